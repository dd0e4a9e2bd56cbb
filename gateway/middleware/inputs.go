//lint:file-ignore SA1019 sampling and roots are deprecated, and governed for as long as a peer may use them

package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// This file governs the requests inside input-required results and the answers
// to them (protocol.md §6 "No way round"), and answers them for a client.

// questionsOf gives the requests inside a result with the state to send back,
// nil where there are none.
func questionsOf(res mcp.Result) (mcp.InputRequestMap, string) {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests, r.RequestState
	case *mcp.GetPromptResult:
		return r.InputRequests, r.RequestState
	case *mcp.ReadResourceResult:
		return r.InputRequests, r.RequestState
	}
	return nil, ""
}

func withQuestions(res mcp.Result, questions mcp.InputRequestMap) mcp.Result {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		c := *r
		c.InputRequests = questions
		return &c
	case *mcp.GetPromptResult:
		c := *r
		c.InputRequests = questions
		return &c
	case *mcp.ReadResourceResult:
		c := *r
		c.InputRequests = questions
		return &c
	}
	return res
}

// answersOf gives the answers inside params, nil where there are none.
func answersOf(params mcp.Params) mcp.InputResponseMap {
	switch p := params.(type) {
	case *mcp.CallToolParams:
		return p.InputResponses
	case *mcp.CallToolParamsRaw:
		return p.InputResponses
	case *mcp.GetPromptParams:
		return p.InputResponses
	case *mcp.ReadResourceParams:
		return p.InputResponses
	}
	return nil
}

func withAnswers(params mcp.Params, answers mcp.InputResponseMap, state string) mcp.Params {
	switch p := params.(type) {
	case *mcp.CallToolParams:
		c := *p
		c.InputResponses, c.RequestState = answers, state
		return &c
	case *mcp.CallToolParamsRaw:
		c := *p
		c.InputResponses, c.RequestState = answers, state
		return &c
	case *mcp.GetPromptParams:
		c := *p
		c.InputResponses, c.RequestState = answers, state
		return &c
	case *mcp.ReadResourceParams:
		c := *p
		c.InputResponses, c.RequestState = answers, state
		return &c
	}
	return params
}

func stateOf(params mcp.Params) string {
	switch p := params.(type) {
	case *mcp.CallToolParams:
		return p.RequestState
	case *mcp.CallToolParamsRaw:
		return p.RequestState
	case *mcp.GetPromptParams:
		return p.RequestState
	case *mcp.ReadResourceParams:
		return p.RequestState
	}
	return ""
}

// questions governs the requests inside a result, each as the request phase of
// its own event, before the result passes.
func (e *exchange) questions(ctx context.Context, at time.Time, res mcp.Result) (mcp.Result, error) {
	inside, _ := questionsOf(res)
	var changed mcp.InputRequestMap
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		question := inside[name]
		event, payload, err := questionPayload(name, question)
		if err != nil {
			return nil, err
		}
		if !e.governs(event, abi.Request, relay.Backend) {
			continue
		}
		if wire.Strict(payload) != nil {
			return nil, errBadAnswer
		}
		now, err := e.decide(ctx, at, event, abi.Request, relay.Backend, payload, nil)
		if err != nil {
			return nil, e.inside(err)
		}
		if !now.modified {
			continue
		}
		if question, err = merged(question, payload, now.payload, e.outgoing(abi.Response)); err != nil {
			return nil, e.inside(e.unfit(&now))
		}
		if changed == nil {
			changed = maps.Clone(inside)
		}
		changed[name] = question
	}
	if changed != nil {
		res = withQuestions(res, changed)
	}
	return res, nil
}

// inside is the block of something inside a result: when it is a tool's, the tool
// may have run.
func (e *exchange) inside(err error) error {
	blocked, ok := err.(*jsonrpc.Error)
	if !ok || e.method != abi.ToolsCall {
		return err
	}
	if _, has := wire.Get(blocked.Data, "mayHaveRun"); has {
		return err
	}
	data := append(bytes.TrimSuffix(blocked.Data, []byte("}")), `,"mayHaveRun":true}`...)
	return &jsonrpc.Error{Code: blocked.Code, Message: blocked.Message, Data: data}
}

// questionPayload is one request as the SDK writes it: it infers members.
func questionPayload(name string, question mcp.InputRequest) (event string, payload json.RawMessage, err error) {
	raw, err := payloadOf(mcp.InputRequestMap{name: question})
	if err != nil {
		return "", nil, err
	}
	method, _ := wire.Get(raw, name, "method")
	event, _ = wire.Unquote(method)
	if payload, _ = wire.Get(raw, name, "params"); payload == nil {
		payload = json.RawMessage("{}")
	}
	return event, payload, nil
}

// answers governs the answers inside a request's params, each as the response
// phase of its own event.
func (e *exchange) answers(ctx context.Context, at time.Time, req mcp.Request) (out mcp.Request, changed bool, err error) {
	if e.initiator != relay.Client || isNil(req.GetParams()) {
		return req, false, nil
	}
	params := req.GetParams()
	inside := answersOf(params)
	var now mcp.InputResponseMap
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		answer := inside[name]
		event := answerEvent(answer)
		if event == "" {
			return nil, false, &jsonrpc.Error{Code: abi.CodeInvalidParams, Message: "an answer in inputResponses is malformed or fits no request that was made"}
		}
		if !e.governs(event, abi.Response, relay.Backend) {
			continue
		}
		payload, err := payloadOf(answer)
		if err != nil {
			return nil, false, err
		}
		if wire.Strict(payload) != nil {
			return nil, false, errBadRequest
		}
		d, err := e.decide(ctx, at, event, abi.Response, relay.Backend, payload, nil)
		if err != nil {
			return nil, false, err
		}
		if !d.modified {
			continue
		}
		if answer, err = merged(answer, payload, d.payload, e.outgoing(abi.Request)); err != nil {
			return nil, false, e.unfit(&d)
		}
		if now == nil {
			now = maps.Clone(inside)
		}
		now[name] = answer
	}
	if now == nil {
		return req, false, nil
	}
	out, err = carrying(req, withAnswers(params, now, stateOf(params)))
	return out, true, err
}

func answerEvent(answer mcp.InputResponse) string {
	switch answer.(type) {
	case *mcp.ElicitResult:
		return abi.ElicitationCreate
	case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
		return abi.SamplingCreate
	case *mcp.ListRootsResult:
		return abi.RootsList
	}
	return ""
}

// The bounds of a client's rounds: how often one call is sent, how often a server
// may ask for another round without a question, and how many questions are
// answered at once.
const (
	mostRounds      = 10
	mostEmptyRounds = 3
	atOnce          = 16
)

// rounds answers what servers ask for inside results and sends the call again,
// as the SDK does in its place. handler answers: what comes by here has been
// governed as a part of its result, and the answer will be as a part of the next
// request.
func rounds(handler mcp.MethodHandler) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			empty := 0
			for round := 1; ; round++ {
				res, err := next(ctx, method, req)
				if err != nil || isNil(res) {
					return res, err
				}
				questions, state := questionsOf(res)
				if questions == nil {
					return res, nil
				}
				if len(questions) == 0 {
					empty++
				}
				if round >= mostRounds || empty >= mostEmptyRounds {
					return nil, fmt.Errorf("%s: the server asked for input %d times and did not answer", method, round)
				}
				answers, err := fulfil(ctx, handler, req.GetSession().(*mcp.ClientSession), questions)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", method, err)
				}
				if req, err = carrying(req, withAnswers(req.GetParams(), answers, state)); err != nil {
					return nil, err
				}
			}
		}
	}
}

// fulfil has the client's own handlers answer.
func fulfil(ctx context.Context, handler mcp.MethodHandler, session *mcp.ClientSession, questions mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(atOnce)
	var mu sync.Mutex
	answers := make(mcp.InputResponseMap, len(questions))
	for name, question := range questions {
		all.Go(func() error {
			res, err := ask(ctx, handler, session, question)
			if err != nil {
				return fmt.Errorf("input %q: %w", name, err)
			}
			answer, ok := res.(mcp.InputResponse)
			if !ok {
				return fmt.Errorf("input %q: a result of type %T is no answer", name, res)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
			return nil
		})
	}
	return answers, all.Wait()
}

func ask(ctx context.Context, handler mcp.MethodHandler, session *mcp.ClientSession, question mcp.InputRequest) (mcp.Result, error) {
	switch p := question.(type) {
	case *mcp.ElicitParams:
		return handler(ctx, abi.ElicitationCreate, &mcp.ElicitRequest{Session: session, Params: p})
	case *mcp.CreateMessageWithToolsParams:
		return handler(ctx, abi.SamplingCreate, &mcp.CreateMessageWithToolsRequest{Session: session, Params: p})
	case *mcp.ListRootsParams:
		return handler(ctx, abi.RootsList, &mcp.ListRootsRequest{Session: session, Params: p})
	}
	return nil, fmt.Errorf("nobody answers a %T", question)
}
