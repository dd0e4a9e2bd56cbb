// Package server serves any set of interceptors as an MCP interceptor server:
// interceptors/list and interceptor/invoke (protocol.md §2, §3) over stdio and
// streamable HTTP, in the stateless protocol of 2026-07-28 and in the handshakes
// before it. It announces the capability of protocol.md §4 and no others: no
// tools, prompts, resources, logging.
//
// # What it may not know
//
// Modules, folders, chains and policy. It knows a set of interceptors through
// the two methods of [Interceptors]; *library.Library is one.
//
// # How it is built
//
// go-sdk does the protocol, and internal/wire stands in front of it: on stdio as
// the connection, over HTTP as a handler around the SDK's. What the strict
// reader refuses never reaches the SDK, and what the SDK does not do faithfully
// is done in front of it: ids are echoed as they were spelled, results go out
// as the canonical writer of package abi wrote them, and errors that the SDK
// words itself go out generic.
//
// # Use
//
//	s := server.New(lib, server.Options{Version: version, Logger: log, Ready: lib.Ready})
//	err := s.ServeStdio(ctx, os.Stdin, os.Stdout)
//
// or, for HTTP,
//
//	mux.Handle("/mcp", s.Handler())
//
// A [Server] is safe for concurrent use and may serve several connections and
// handlers at once.
package server
