package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime"
)

// Each limit of the file reaches the sandbox, and what the file leaves out stays
// at abi.md's default.
func TestLimitsReachTheSandbox(t *testing.T) {
	require.Equal(t, runtime.DefaultLimits(), limitsOf(config.Limits{}))
	require.Equal(t, runtime.Limits{
		ModuleBytes: 1, Memory: 2, TableElements: 3, CallTime: 4 * time.Second, LoadTime: 5 * time.Second,
		CompileTime: runtime.DefaultLimits().CompileTime, Fuel: 6,
		InputBytes: 7, OutputBytes: 8, LogLines: 9, LogLineBytes: 10, Calls: 11, Queue: 12,
	}, limitsOf(config.Limits{
		Module: 1, Memory: 2, Table: 3, Timeout: 4 * time.Second, Load: 5 * time.Second, Fuel: 6,
		Input: 7, Output: 8, LogLines: 9, LogLine: 10, Calls: 11, Queue: 12,
	}))
	require.Equal(t, 4*11, limitsOf(config.Limits{Calls: 11}).Queue, "the queue follows the calls")
}

// What is read of a file before its own limit is known is as much as any file of
// the folder may have.
func TestTheLargestFileOfAFolder(t *testing.T) {
	const usual = 32 << 20
	module := func(bytes int64) config.Limits { return config.Limits{Module: bytes} }
	files := func(bytes int64) map[string]config.FileOptions {
		return map[string]config.FileOptions{"a.wasm": {Limits: module(bytes)}}
	}
	for _, c := range []struct {
		host config.Host
		want int64
	}{
		{config.Host{}, usual},
		{config.Host{Limits: module(100)}, 100},
		{config.Host{Files: files(100)}, usual},
		{config.Host{Files: files(usual + 1)}, usual + 1},
		{config.Host{Limits: module(100), Files: files(50)}, 100},
		{config.Host{Limits: module(100), Files: files(200)}, 200},
	} {
		require.Equal(t, c.want, largestFile(&c.host), "%+v", c.host)
	}
}
