package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// The rows of field-cases.md "Gateway" that apply to stdio, by their names.

func TestDeletedFieldStaysDeleted(t *testing.T) {
	sc := start(t, map[string]rule{"tools/call response": replace(`{"content":[],"_meta":{"b":2}}`)})
	sc.client.send(call("1", `{"name":"t"}`))
	sc.backend.gets(call("1", `{"name":"t"}`))
	sc.backend.send(result("1", `{"content":[],"structuredContent":{"x":1},"_meta":{"a":1,"b":2}}`))
	sc.client.gets(result("1", `{"content":[],"_meta":{"b":2}}`))
}

const odd = `{"zeta":1,"name":"t","alpha":{"n":[9007199254740993,1.0,1e400,-0,0.10],"s":"<>&\u003c\ud83d\ude00 \ud800 é\/"},"_meta":{"progressToken":9007199254740993,"x":null}}`

func TestUntouchedMeansUntouched(t *testing.T) {
	request := `{"id": 9007199254740993 ,"extra":[1.0,{"a":"b"}],"params":` + odd + `,"method":"tools\/call","jsonrpc":"2.0"}`
	response := `{"id":9007199254740993,"x-unknown":{"k":1e400},"result":` + odd + `,"jsonrpc":"2.0"}`
	t.Run("with no plan", func(t *testing.T) {
		sc := start(t, nil)
		sc.client.send(" \t" + request + " \r")
		sc.backend.gets(request)
		sc.backend.send(response)
		sc.client.gets(response)
	})
	t.Run("after an unmodified pass", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call request": pass, "tools/call response": pass})
		sc.client.send(request)
		sc.backend.gets(request)
		sc.backend.send(response)
		sc.client.gets(response)
		seen := sc.governor.operations()
		require.Len(t, seen, 2)
		require.Equal(t, odd, string(seen[0].Payload))
		require.Equal(t, odd, string(seen[1].Payload))
		require.Equal(t, odd, string(seen[1].Request))
	})
	t.Run("a mutation replaces exactly params and result", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call request": replace(`{"p":1e3}`), "tools/call response": replace(`{"r":0.0}`)})
		sc.client.send(request)
		sc.backend.gets(strings.Replace(request, odd, `{"p":1e3}`, 1))
		sc.backend.send(response)
		sc.client.gets(strings.Replace(response, odd, `{"r":0.0}`, 1))
		require.Equal(t, `{"p":1e3}`, string(sc.governor.operations()[1].Request), "the request as it was passed on")
	})
	t.Run("absent params", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/list request": pass, "prompts/list request": replace(`{"cursor":"c"}`)})
		sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		sc.backend.gets(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		require.Equal(t, `{}`, string(sc.governor.operations()[0].Payload))
		sc.client.send(`{"jsonrpc":"2.0","method":"prompts/list","id":2}`)
		sc.backend.gets(`{"jsonrpc":"2.0","method":"prompts/list","id":2,"params":{"cursor":"c"}}`)
	})
	t.Run("errors and notifications", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call request": pass, "tools/call response": block("validation_failed", "x")})
		sc.client.send(call("1", `{}`))
		sc.backend.gets(call("1", `{}`))
		sc.backend.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"a":1,"data":{"a":1,"a":2}}}`, `{"jsonrpc":"2.0","id":1,"error":{"data":{"a":1,"a":2},"code":-1.0e3,"message":"m"}}`)
		sc.client.gets(`{"jsonrpc":"2.0","method":"notifications/message","params":{"a":1,"data":{"a":1,"a":2}}}`, `{"jsonrpc":"2.0","id":1,"error":{"data":{"a":1,"a":2},"code":-1.0e3,"message":"m"}}`)
	})
}

func TestDuplicateKeys(t *testing.T) {
	for name, c := range map[string]struct{ send, want string }{
		"top level of params": {call("1", `{"name":"safe","name":"evil"}`), failure("1", "-32600", "member names that are equal or differ only in case")},
		"by case":             {call("1", `{"name":"safe","Name":"evil"}`), failure("1", "-32600", "member names that are equal or differ only in case")},
		"deep":                {call("1", `{"name":"safe","arguments":{"a":[{"b":1,"\u0062":2}]}}`), failure("1", "-32600", textDuplicates)},
		"a batch":             {`[` + call("1", `{}`) + `]`, failure("null", "-32600", "batches are not supported")},
		"Method beside method": {`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`,
			failure("1", "-32600", "member name of the envelope in other case")},
		"not JSON":   {`{"jsonrpc":"2.0","id":1,"method":"ping"`, failure("1", "-32700", "unexpected end of JSON")},
		"unreadable": {`hello`, failure("null", "-32700", "unexpected character in JSON")},
		"not UTF-8":  {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", failure("1", "-32700", "invalid UTF-8")},
		"null id":    {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, failure("null", "-32600", "id must not be null")},
	} {
		t.Run(name, func(t *testing.T) {
			sc := start(t, map[string]rule{"tools/call request": pass})
			sc.client.send(c.send)
			sc.client.gets(c.want)
			sc.ping("2")
			require.Empty(t, sc.governor.operations())
			require.Equal(t, []Cause{BadMessage}, sc.watcher.causes())
		})
	}
	t.Run("deep ones pass where nothing is governed", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/list request": pass})
		sc.client.send(call("1", `{"a":{"b":1,"b":2}}`))
		sc.backend.gets(call("1", `{"a":{"b":1,"b":2}}`))
	})
	t.Run("of a request whose response is governed", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": pass})
		sc.client.send(call("1", `{"a":{"b":1,"b":2}}`))
		sc.client.gets(failure("1", "-32600", textDuplicates))
	})
	t.Run("of a response", func(t *testing.T) {
		for _, bad := range []string{
			result("1", `{"a":{"b":1,"b":2}}`), result("1", `[]`), result("1", `null`), result("1", `"x"`),
			`{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}`,
			`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `{"jsonrpc":"1.0","id":1,"result":{}}`,
		} {
			sc := start(t, map[string]rule{"tools/call response": pass})
			sc.client.send(call("1", `{}`))
			sc.backend.gets(call("1", `{}`))
			sc.backend.send(bad)
			sc.client.gets(failure("1", "-32603", textBadAnswer))
			require.Empty(t, sc.governor.operations(), bad)
		}
	})
	t.Run("of a notification", func(t *testing.T) {
		sc := start(t, nil)
		sc.client.send(`{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}`)
		sc.ping("1")
		require.Equal(t, []Cause{BadMessage}, sc.watcher.causes())
	})
	t.Run("from the backend", func(t *testing.T) {
		sc := start(t, nil)
		sc.backend.send(`{"jsonrpc":"2.0","id":"b","method":"roots/list","METHOD":"x"}`, `[]`)
		sc.backend.gets(failure(`"b"`, "-32600", "member name of the envelope in other case"), failure("null", "-32600", "batches are not supported"))
		sc.backend.send(` {"broken"`)
		sc.backend.gets(failure("null", "-32700", "unexpected end of JSON"))
		sc.backend.send(` Server running on stdio`)
		sc.ping("1")
		require.Equal(t, []Cause{BadMessage, BadMessage, BadMessage, BadMessage}, sc.watcher.causes())
	})
}

func TestSubscribeMutation(t *testing.T) {
	sc := start(t, map[string]rule{"resources/subscribe request": edit("file:///a", "file:///b")})
	sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	sc.backend.gets(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///b"}}`)
	updated := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///b"}}`
	sc.backend.send(result("1", `{}`), updated)
	sc.client.gets(result("1", `{}`), updated)
}

const cancelled7 = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7.0,"reason":"r"}}`

// held is a rule that waits until its context ends, and tells when it began and
// ended.
func held() (r rule, began, ended chan struct{}) {
	began, ended = make(chan struct{}), make(chan struct{})
	return func(ctx context.Context, _ Operation) Decision {
		close(began)
		<-ctx.Done()
		close(ended)
		return Decision{Block: &Block{Reason: "timeout"}}
	}, began, ended
}

func TestCancelledCall(t *testing.T) {
	t.Run("while the backend runs it", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": pass})
		sc.client.send(call("7", `{}`), cancelled7)
		sc.backend.gets(call("7", `{}`), cancelled7)
		sc.backend.send(result("7", `{}`))
		sc.ping("8")
		require.Empty(t, sc.governor.operations())
		require.Equal(t, []Cause{CancelledResponse}, sc.watcher.causes())
		sc.client.send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		sc.client.gets(failure("7", "-32600", textReused))
	})
	t.Run("while its request is decided about", func(t *testing.T) {
		wait, began, ended := held()
		sc := start(t, map[string]rule{"tools/call request": wait})
		sc.client.send(call("7", `{}`))
		<-began
		sc.client.send(cancelled7)
		<-ended
		sc.client.send(cancelled7)
		sc.ping("8") // neither the call, nor the cancellation, nor an answer
		require.Equal(t, []Cause{CancelledUnseen, CancelledUnseen}, sc.watcher.causes())
	})
	t.Run("while its response is decided about", func(t *testing.T) {
		wait, began, ended := held()
		sc := start(t, map[string]rule{"tools/call response": wait})
		sc.client.send(call("7", `{}`))
		sc.backend.gets(call("7", `{}`))
		sc.backend.send(result("7", `{}`))
		<-began
		sc.client.send(cancelled7)
		sc.backend.gets(cancelled7)
		<-ended
		sc.ping("8")
	})
	t.Run("of a request nobody knows", func(t *testing.T) {
		sc := start(t, nil)
		sc.client.send(cancelled7, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		sc.backend.gets(cancelled7, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	})
	t.Run("by the backend", func(t *testing.T) {
		wait, began, ended := held()
		sc := start(t, map[string]rule{"sampling/createMessage request": wait})
		sc.backend.send(`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`)
		<-began
		sc.backend.send(cancelled7)
		<-ended
		sc.ping("7")
	})
	t.Run("too often", func(t *testing.T) {
		sc := start(t, nil, func(o *Options) { o.Limits.Marks = 2 })
		for id := range 3 {
			sc.client.send(call(fmt.Sprint(id), `{}`), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		}
		for range 5 {
			sc.backend.next()
		}
		sc.client.gets(failure("2", "-32603", textClosing))
		sc.backend.getsEnd()
		sc.backend.close()
		sc.client.getsEnd()
		require.ErrorIs(t, sc.ends(), ErrTooManyMarks)
	})
}

func TestProgressAndSampling(t *testing.T) {
	sc := start(t, map[string]rule{
		"tools/call request": pass, "tools/call response": pass,
		"sampling/createMessage request":  edit("secret", "***"),
		"sampling/createMessage response": edit("model", "m"),
	})
	sc.client.send(call("1", `{"_meta":{"progressToken":"p"}}`))
	sc.backend.gets(call("1", `{"_meta":{"progressToken":"p"}}`))
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.50}}`
	sc.backend.send(progress, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"t":"secret"}}`)
	sc.client.gets(progress, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"t":"***"}}`)
	sc.client.send(result("1", `{"role":"assistant","model":"x"}`))
	sc.backend.gets(result("1", `{"role":"assistant","m":"x"}`))
	sc.backend.send(result("1", `{"content":[]}`))
	sc.client.gets(result("1", `{"content":[]}`))

	var got []string
	for _, op := range sc.governor.operations() {
		got = append(got, fmt.Sprint(op.Event, " ", op.Phase, " ", op.Direction, " by ", op.Initiator, " ", string(op.Request)))
	}
	require.Equal(t, []string{
		"tools/call request sending by client ",
		"sampling/createMessage request receiving by backend ",
		`sampling/createMessage response sending by backend {"t":"***"}`,
		`tools/call response receiving by client {"_meta":{"progressToken":"p"}}`,
	}, got)
}

func TestDeadBackend(t *testing.T) {
	sc := start(t, map[string]rule{"tools/call request": pass, "prompts/get request": func(ctx context.Context, _ Operation) Decision {
		<-ctx.Done()
		return Decision{}
	}})
	sc.client.send(call(`"a"`, `{}`), `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`)
	sc.backend.next()
	sc.backend.next()
	sc.client.send(`{"jsonrpc":"2.0","id":3,"method":"prompts/get"}`)
	require.Eventually(t, func() bool { return len(sc.governor.operations()) == 2 }, patience, 1)
	sc.backend.close()
	got := map[string]bool{sc.client.next(): true, sc.client.next(): true, sc.client.next(): true}
	require.Equal(t, map[string]bool{
		failure(`"a"`, "-32603", textBackendGone): true, failure("1.0", "-32603", textBackendGone): true, failure("3", "-32603", textBackendGone): true,
	}, got)
	sc.client.getsEnd()
	var gone *BackendGone
	require.ErrorAs(t, sc.ends(), &gone)
	require.Equal(t, &BackendGone{Spoke: false, Open: 3}, gone)
}

func TestListIsGoverned(t *testing.T) {
	sc := start(t, map[string]rule{
		"tools/list response": edit(`{"name":"evil"}`, `{"name":"fine"}`),
		"tools/call request": func(_ context.Context, op Operation) Decision {
			if strings.Contains(string(op.Payload), `"evil"`) {
				return Decision{Block: &Block{Reason: "validation_failed"}}
			}
			return Decision{}
		},
	})
	for page, params := range []string{`{}`, `{"cursor":"2"}`} {
		list := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`, page, params)
		sc.client.send(list)
		sc.backend.gets(list)
		sc.backend.send(result(fmt.Sprint(page), `{"tools":[{"name":"evil"}],"nextCursor":"2"}`))
		sc.client.gets(result(fmt.Sprint(page), `{"tools":[{"name":"fine"}],"nextCursor":"2"}`))
	}
	sc.client.send(call("9", `{"name":"evil"}`))
	require.Contains(t, sc.client.next(), `"id":9,"error":{"code":-32602`)
}

func TestAListThatAMutationMayHaveChangedIsNotCached(t *testing.T) {
	sc := start(t, map[string]rule{"tools/list response": func(context.Context, Operation) Decision { return Decision{Uncacheable: true} }})
	for answer, want := range map[string]string{
		`{"ttlMs" : 6e4,"tools":[{"ttlMs":1}],"cacheScope":"public"}`: `{"ttlMs" : 0,"tools":[{"ttlMs":1}],"cacheScope":"private"}`,
		`{"tools":[]}`: `{"tools":[]}`,
	} {
		sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		sc.backend.next()
		sc.backend.send(result("1", answer))
		sc.client.gets(result("1", want))
	}
}

func TestSmuggledLines(t *testing.T) {
	// A mutator, or an end with another framing, brings line breaks.
	smuggled := "{\n\"x\":\r\n" + call("66", `{}`) + "\r\n}"
	flat := `{"x":` + call("66", `{}`) + `}`
	sc := start(t, map[string]rule{"tools/call request": replace(smuggled), "tools/call response": replace(smuggled)})
	sc.client.send(call("1", `{}`))
	sc.backend.gets(call("1", flat))
	sc.backend.send("{\"jsonrpc\":\"2.0\",\r\"id\":1,\"result\":{}}")
	sc.client.gets(result("1", flat))

	far, end := newFar(t, 100)
	require.NoError(t, end.Write([]byte("{\n"+call("66", `{}`)+"\r}")))
	far.gets(`{` + call("66", `{}`) + `}`)
	require.NoError(t, end.Close())
	far.getsEnd()
}

func TestReusedID(t *testing.T) {
	for _, same := range [][]string{{"7", "7"}, {"1", "1.0", "1e0", "10e-1"}, {"9007199254740993", "9007199254740993"}, {`"a"`, `"\u0061"`}} {
		sc := start(t, nil)
		sc.client.send(call(same[0], `{}`))
		sc.backend.gets(call(same[0], `{}`))
		for _, again := range same[1:] {
			sc.client.send(`{"jsonrpc":"2.0","id":` + again + `,"method":"ping"}`)
			sc.client.gets(failure(again, "-32600", textReused))
		}
		sc.backend.send(result(same[0], `{}`))
		sc.client.gets(result(same[0], `{}`))
		sc.client.send(call(same[0], `{}`))
		sc.backend.gets(call(same[0], `{}`))
	}
	t.Run("others are other ids", func(t *testing.T) {
		sc := start(t, nil)
		for _, id := range []string{"1", `"1"`, "9007199254740993", "9007199254740992", "1.5", `""`} {
			sc.client.send(call(id, `{}`))
			sc.backend.gets(call(id, `{}`))
		}
		sc.backend.send(call("1", `{}`))
		sc.client.gets(call("1", `{}`))
	})
	t.Run("a full table", func(t *testing.T) {
		sc := start(t, nil, func(o *Options) { o.Limits.InFlight = 1 })
		sc.client.send(call("1", `{}`))
		sc.backend.gets(call("1", `{}`))
		sc.client.send(call("2", `{}`))
		sc.client.gets(failure("2", "-32603", textFull))
		sc.backend.send(result("1", `{}`))
		sc.client.gets(result("1", `{}`))
		sc.ping("3")
	})
	t.Run("full of bytes", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": pass}, func(o *Options) { o.Limits.KeptBytes = 10 })
		sc.client.send(call("1", `{"a":"0123456789"}`))
		sc.backend.gets(call("1", `{"a":"0123456789"}`))
		sc.client.send(call("2", `{}`))
		sc.client.gets(failure("2", "-32603", textFull))
		sc.backend.send(result("1", `{}`))
		sc.client.gets(result("1", `{}`))
		sc.client.send(call("2", `{}`))
		sc.backend.gets(call("2", `{}`))
	})
}

func TestUnknownResponse(t *testing.T) {
	wait, began, _ := held()
	sc := start(t, map[string]rule{"prompts/get request": wait})
	sc.client.send(call("1", `{}`), `{"jsonrpc":"2.0","id":2,"method":"prompts/get"}`)
	sc.backend.gets(call("1", `{}`))
	<-began
	sc.backend.send(result("5", `{}`), result(`"1"`, `{}`), failure("null", "-1", "m"), `{"jsonrpc":"2.0","error":{}}`, result("2", `{}`))
	sc.client.send(result("5", `{}`))
	sc.backend.send(result("1", `{}`), result("1", `{}`))
	sc.client.gets(result("1", `{}`))
	sc.ping("3")
	require.ElementsMatch(t, []Cause{UnknownResponse, UnknownResponse, UnknownResponse, UnknownResponse, UnknownResponse, UnknownResponse, UnknownResponse}, sc.watcher.causes())

	t.Run("a second answer while the first is decided about", func(t *testing.T) {
		release := make(chan struct{})
		sc := start(t, map[string]rule{"tools/call response": func(context.Context, Operation) Decision { <-release; return Decision{} }})
		sc.client.send(call("1", `{}`))
		sc.backend.gets(call("1", `{}`))
		sc.backend.send(result("1", `{}`), result("1", `{"second":true}`), failure("1", "1", "third"))
		sc.ping("2")
		close(release)
		sc.client.gets(result("1", `{}`))
		sc.ping("3")
		require.Equal(t, []Cause{DuplicateResponse, DuplicateResponse}, sc.watcher.causes())
	})
}

func TestBigBody(t *testing.T) {
	big := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	sc := start(t, nil)
	sc.client.send(call("1", big))
	sc.client.gets(failure("1", "-32600", textTooLarge))
	sc.ping("2")
	sc.client.send(call("3", `{}`))
	sc.backend.gets(call("3", `{}`))
	sc.backend.send(result("3", big))
	sc.client.gets(failure("3", "-32603", textBadAnswer))
	sc.backend.send(`{"jsonrpc":"2.0","method":"notifications/x","params":` + big + `}`)
	sc.client.send(`{"x":` + big + `}`)
	sc.client.gets(failure("null", "-32600", textTooLarge))
	sc.ping("4")
	require.Equal(t, []Cause{TooLarge, TooLarge, TooLarge, TooLarge}, sc.watcher.causes())
}

// What else protocol.md §6 says.

func TestBoundaryDecidesTheDirection(t *testing.T) {
	for _, c := range []struct {
		b         Boundary
		initiator Side
		phase     abi.Phase
		want      abi.Direction
	}{
		{GuardClient, Client, abi.Request, abi.Sending}, {GuardClient, Client, abi.Response, abi.Receiving},
		{GuardClient, Backend, abi.Request, abi.Receiving}, {GuardClient, Backend, abi.Response, abi.Sending},
		{GuardBackend, Client, abi.Request, abi.Receiving}, {GuardBackend, Client, abi.Response, abi.Sending},
		{GuardBackend, Backend, abi.Request, abi.Sending}, {GuardBackend, Backend, abi.Response, abi.Receiving},
	} {
		require.Equal(t, c.want, c.b.Direction(c.initiator, c.phase), "%+v", c)
	}
}

func TestBlocked(t *testing.T) {
	finding := abi.Message{Path: "$.a", Message: "no <b>", Severity: "error"}
	type answer struct {
		ID    json.RawMessage
		Error struct {
			Code    int
			Message string
			Data    map[string]any
		}
		Result map[string]any
	}
	read := func(t *testing.T, line string) (a answer) {
		require.NoError(t, json.Unmarshal([]byte(line), &a))
		return a
	}
	t.Run("a request, of the guarded side", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call request": block("validation_failed", "guard", finding)})
		sc.client.send(call("1.0", `{}`))
		line := sc.client.next()
		a := read(t, line)
		require.Contains(t, line, `"no <b>"`, "not escaped for HTML")
		require.Equal(t, "1.0", string(a.ID))
		require.Equal(t, -32602, a.Error.Code)
		require.Equal(t, textBlocked, a.Error.Message)
		reference := a.Error.Data["reference"]
		require.Equal(t, map[string]any{
			"reason": "validation_failed", "reference": reference, "event": "tools/call", "phase": "request", "interceptor": "guard",
			"messages": []any{map[string]any{"path": "$.a", "message": "no <b>", "severity": "error"}},
		}, a.Error.Data)
		require.Equal(t, reference, sc.watcher.records[0].Reference)
		require.Equal(t, reference, sc.governor.operations()[0].Reference)
		sc.ping("1") // the backend saw nothing, and the id is free again
	})
	t.Run("a response, of the other side", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": block("timeout", "guard", finding)}, func(o *Options) { o.Boundary = GuardBackend })
		sc.client.send(call("1", `{}`))
		sc.backend.gets(call("1", `{}`))
		sc.backend.send(result("1", `{}`))
		a := read(t, sc.client.next())
		require.Equal(t, -32603, a.Error.Code)
		require.Equal(t, textFailed, a.Error.Message)
		require.Equal(t, map[string]any{
			"reason": "timeout", "reference": a.Error.Data["reference"], "event": "tools/call", "phase": "response", "mayHaveRun": true,
		}, a.Error.Data)
	})
	t.Run("details by configuration", func(t *testing.T) {
		for details, want := range map[Details]bool{DetailsAlways: true, DetailsNever: false} {
			for _, b := range []Boundary{GuardClient, GuardBackend} {
				sc := start(t, map[string]rule{"tools/list request": block("validation_failed", "guard")}, func(o *Options) { o.Boundary, o.Blocked.Details = b, details })
				sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
				_, named := read(t, sc.client.next()).Error.Data["interceptor"]
				require.Equal(t, want, named)
			}
		}
	})
	t.Run("the client's answer to the backend", func(t *testing.T) {
		sc := start(t, map[string]rule{"elicitation/create response": block("validation_failed", "guard")})
		sc.backend.send(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}`)
		sc.client.gets(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}`)
		sc.client.send(result(`"e"`, `{"action":"accept"}`))
		a := read(t, sc.backend.next())
		require.Equal(t, `"e"`, string(a.ID))
		require.Equal(t, -32602, a.Error.Code)
		require.NotContains(t, a.Error.Data, "interceptor")
		require.NotContains(t, a.Error.Data, "mayHaveRun")
	})
	t.Run("as a tool's result", func(t *testing.T) {
		sc := start(t, map[string]rule{
			"tools/call request": block("validation_failed", "guard", finding), "tools/list request": block("validation_failed", "guard"),
		}, func(o *Options) { o.Blocked.ToolResult = true })
		sc.client.send(call("1", `{}`))
		a := read(t, sc.client.next())
		require.Equal(t, true, a.Result["isError"])
		require.Contains(t, fmt.Sprint(a.Result["content"]), "no <b>")
		require.Equal(t, "validation_failed", a.Result["_meta"].(map[string]any)[abi.ExtensionKey].(map[string]any)["reason"])
		sc.client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		require.Equal(t, -32602, read(t, sc.client.next()).Error.Code)
		sc.client.send(call("3", `{"task":{}}`))
		require.Equal(t, -32602, read(t, sc.client.next()).Error.Code, "a result of a call would be no task")
	})
	t.Run("by a governor that panics or gives nonsense", func(t *testing.T) {
		for _, r := range []rule{
			func(context.Context, Operation) Decision { panic("p") }, replace(`[]`), replace(`{"a":1,"a":2}`), replace(`{`), replace(``),
		} {
			sc := start(t, map[string]rule{"tools/call request": r})
			sc.client.send(call("1", `{}`))
			if line := sc.client.next(); true {
				require.Equal(t, -32603, read(t, line).Error.Code, line)
			}
			sc.ping("2")
		}
	})
}

func TestNobodyWaitsForAPlan(t *testing.T) {
	release := make(chan struct{})
	sc := start(t, map[string]rule{"tools/call request": func(_ context.Context, op Operation) Decision {
		if strings.Contains(string(op.Payload), "slow") {
			<-release
		}
		return Decision{}
	}})
	note := `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	sc.client.send(call("1", `{"name":"slow"}`), call("2", `{"name":"fast"}`))
	sc.backend.gets(call("2", `{"name":"fast"}`))
	sc.client.send(note)
	sc.backend.gets(note)
	sc.ping("3")
	close(release)
	sc.backend.gets(call("1", `{"name":"slow"}`))
}

func TestPlansAreBounded(t *testing.T) {
	release := make(chan struct{})
	sc := start(t, map[string]rule{"tools/call request": func(context.Context, Operation) Decision { <-release; return Decision{} }}, func(o *Options) { o.Limits.Plans = 2 })
	go func() {
		for id := range 5 {
			io.WriteString(sc.client.w, call(fmt.Sprint(id), `{}`)+"\n")
		}
	}()
	require.Eventually(t, func() bool { return len(sc.governor.operations()) == 2 }, patience, 1)
	sc.backend.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	sc.client.gets(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	require.Len(t, sc.governor.operations(), 2)
	close(release)
	for range 5 {
		sc.backend.next()
	}
}

func TestProtocolVersionIsLearned(t *testing.T) {
	meta := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	sc := start(t, map[string]rule{"tools/list request": pass})
	sc.client.send(`{"jsonrpc":"2.0","id":0,"method":"tools/list"}`, meta)
	sc.backend.next()
	sc.backend.next()
	initialize := `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	sc.client.send(initialize)
	sc.backend.gets(initialize)
	sc.backend.send(result("2", `{"protocolVersion":"2025-06-18"}`), result("1", `{}`), result("0", `{}`))
	sc.client.gets(result("2", `{"protocolVersion":"2025-06-18"}`))
	sc.client.next()
	sc.client.next()
	sc.client.send(meta)
	sc.backend.gets(meta)
	got := map[string]int{}
	for _, op := range sc.governor.operations() {
		got[op.ProtocolVersion]++
	}
	require.Equal(t, map[string]int{"": 1, "2026-07-28": 1, "2025-06-18": 1}, got, "a session's version comes before a request's own")

	t.Run("from server/discover", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/list request": pass})
		discover := func(id, version string) {
			sc.client.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"}}}`)
			sc.backend.next()
			sc.backend.send(result(id, `{"supportedVersions":["2025-11-25","2026-07-28"]}`))
			sc.client.next()
		}
		list := `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}}`
		discover("1", "2030-01-01")
		discover("2", "2026-07-28")
		sc.client.send(list)
		sc.backend.gets(list)
		require.Equal(t, "2026-07-28", sc.governor.operations()[0].ProtocolVersion)
	})
	for _, bad := range []string{`"zzzz"`, `1`, `"2025-11-2x"`, `"2025/11/25"`, `null`} {
		require.Empty(t, version([]byte(bad)))
	}
}

// The life of a session.

func TestClientCloses(t *testing.T) {
	release := make(chan struct{})
	sc := start(t, map[string]rule{"tools/call request": func(context.Context, Operation) Decision { <-release; return Decision{} }})
	sc.backend.send(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	sc.client.gets(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	sc.client.send(call("1", `{}`))
	sc.client.close()
	require.Eventually(t, func() bool { return len(sc.governor.operations()) == 1 }, patience, 1)
	close(release)
	sc.backend.gets(call("1", `{}`), failure("1", "-32603", textClientGone))
	sc.backend.getsEnd()
	sc.backend.send(result("1", `{}`))
	sc.client.gets(result("1", `{}`))
	sc.backend.close()
	sc.client.getsEnd()
	require.NoError(t, sc.ends())
}

func TestShutdownDrains(t *testing.T) {
	release := make(chan struct{})
	sc := start(t, map[string]rule{"tools/call response": func(context.Context, Operation) Decision { <-release; return Decision{} }})
	sc.client.send(call("1", `{}`), call("2", `{}`))
	sc.backend.next()
	sc.backend.next()
	sc.backend.send(result("1", `{}`))
	require.Eventually(t, func() bool { return len(sc.governor.operations()) == 1 }, patience, 1)
	stop := errors.New("stop")
	sc.cancel(stop)
	require.Eventually(t, func() bool {
		sc.client.send(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		select {
		case line := <-sc.client.lines:
			require.Equal(t, failure("9", "-32603", textClosing), line)
			return true
		case <-sc.backend.lines:
			sc.backend.send(result("9", `{}`))
			sc.client.gets(result("9", `{}`))
			return false
		}
	}, patience, 1)
	close(release)
	sc.client.gets(result("1", `{}`), failure("2", "-32603", textClosing))
	sc.backend.getsEnd()
	sc.backend.close()
	sc.client.getsEnd()
	require.ErrorIs(t, sc.ends(), stop)
}

// brokenWriter refuses what is written, and says so once.
type brokenWriter struct{ refused chan struct{} }

func (b brokenWriter) Write([]byte) (int, error) {
	close(b.refused)
	return 0, io.ErrClosedPipe
}
func (brokenWriter) Close() error { return nil }

func TestAPeerThatDoesNotTakeMessages(t *testing.T) {
	t.Run("client", func(t *testing.T) {
		in, w := io.Pipe()
		defer w.Close()
		backend, backendEnd := newFar(t, 1000)
		done := make(chan error, 1)
		go func() {
			done <- Run(t.Context(), Lines(in, brokenWriter{make(chan struct{})}, 1000), backendEnd, Options{})
		}()
		backend.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		backend.getsEnd()
		backend.close()
		require.ErrorContains(t, <-done, "the client does not take messages")
	})
	t.Run("backend", func(t *testing.T) {
		r, in := io.Pipe()
		refused := make(chan struct{})
		client, clientEnd := newFar(t, 1000)
		done := make(chan error, 1)
		go func() { done <- Run(t.Context(), clientEnd, Lines(r, brokenWriter{refused}, 1000), Options{}) }()
		client.send(call("1", `{}`))
		<-refused
		in.Close()
		client.gets(failure("1", "-32603", textBackendGone))
		client.getsEnd()
		var gone *BackendGone
		require.ErrorAs(t, <-done, &gone)
	})
	t.Run("a client that does not read", func(t *testing.T) {
		in, w := io.Pipe()
		defer w.Close()
		never, stuck := io.Pipe()
		defer never.Close()
		backend, backendEnd := newFar(t, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, Lines(in, stuck, 1000), backendEnd, Options{Grace: 1}) }()
		backend.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		backend.close()
	})
	t.Run("a client that is gone, of a backend that does not read", func(t *testing.T) {
		client, clientEnd := newFar(t, 1000)
		never, stuck := io.Pipe()
		defer never.Close()
		in, w := io.Pipe()
		defer w.Close()
		done := make(chan error, 1)
		go func() {
			done <- Run(t.Context(), clientEnd, Lines(in, stuck, 1000), Options{Grace: 1, Leave: 1, Stall: 10 * time.Millisecond})
		}()
		client.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		client.close() // which is not seen while the message waits
		client.getsEnd()
		require.Error(t, <-done)
	})
}

func TestWhatTheOperatorReads(t *testing.T) {
	require.EqualError(t, &BackendGone{}, "the backend closed the connection before it had sent a message")
	gone := &BackendGone{Spoke: true, Open: 2, Err: io.ErrUnexpectedEOF}
	require.EqualError(t, gone, "the backend closed the connection with 2 requests open: unexpected EOF")
	require.ErrorIs(t, gone, io.ErrUnexpectedEOF)

	var log bytes.Buffer
	client, clientEnd := newFar(t, 1000)
	backend, backendEnd := newFar(t, 1000)
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), clientEnd, backendEnd, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	}()
	client.send(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 200) + `"}`)
	backend.next()
	client.send(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 200) + `"}`)
	client.gets(failure("1", "-32600", textReused))
	client.close()
	backend.getsEnd()
	backend.close()
	require.NoError(t, <-done)
	require.Contains(t, log.String(), `msg="message discarded" from=client cause=reused_id number=1 kind=request method=`+strings.Repeat("m", shownMethod)+"… ")
}

func TestDiscardsAreCountedAndDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	o := NewLogObserver(slog.New(slog.NewTextHandler(&log, nil)))
	for range 1000 {
		o.Discarded(Discard{Cause: UnknownResponse})
	}
	o.Discarded(Discard{Cause: BadMessage})
	require.Equal(t, []uint64{1000, 1, 0}, []uint64{o.Count(UnknownResponse), o.Count(BadMessage), o.Count(TooLarge)})
	require.Equal(t, 100+3+1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), "number=512")
}
