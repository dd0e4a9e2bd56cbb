package relay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

// protocol.md §6 "No way round".

const sample = `{"method":"sampling/createMessage","params":{"t":"secret"}}`

func TestTaskResult(t *testing.T) {
	redact := map[string]rule{"tools/call response": edit("secret", "***"), "prompts/get response": edit("secret", "+++")}
	get := func(id, method, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
	}
	ask := func(sc *scene, id, method, params, answer, want string) {
		t.Helper()
		sc.client.send(get(id, method, params))
		sc.backend.gets(get(id, method, params))
		sc.backend.send(result(id, answer))
		sc.client.gets(result(id, want))
	}
	t.Run("of the method that made the task", func(t *testing.T) {
		sc := start(t, redact)
		ask(sc, "1", "tools/call", `{"task":{}}`, `{"task":{"taskId":"a"}}`, `{"task":{"taskId":"a"}}`)
		ask(sc, "2", "prompts/get", `{"task":{}}`, `{"resultType":"task","taskId":"b"}`, `{"resultType":"task","taskId":"b"}`)
		ask(sc, "3", "tasks/result", `{"taskId":"a"}`, `{"x":"secret"}`, `{"x":"***"}`)
		ask(sc, "4", "tasks/result", `{"taskId":"b"}`, `{"x":"secret"}`, `{"x":"+++"}`)
		ask(sc, "5", "tasks/get", `{"taskId":"b"}`, `{"taskId":"b","result":{"x":"secret"}}`, `{"taskId":"b","result":{"x":"+++"}}`)
		ask(sc, "6", "tasks/get", `{"taskId":"b"}`, `{"taskId":"b","status":"working"}`, `{"taskId":"b","status":"working"}`)
	})
	t.Run("of an unknown task it is tools/call", func(t *testing.T) {
		sc := start(t, redact)
		ask(sc, "1", "tasks/result", `{"taskId":"z"}`, `{"x":"secret"}`, `{"x":"***"}`)
		ask(sc, "2", "tasks/result", `{}`, `{"x":"secret"}`, `{"x":"***"}`)
	})
	t.Run("blocked", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": block("validation_failed", "g")})
		for id, method := range map[string]string{"1": "tasks/result", "2": "tasks/get"} {
			sc.client.send(get(id, method, `{"taskId":"z"}`))
			sc.backend.next()
			sc.backend.send(result(id, `{"result":{"x":"secret"}}`))
			line := sc.client.next()
			require.Contains(t, line, `"event":"tools/call","phase":"response","mayHaveRun":true`)
			require.NotContains(t, line, "secret")
		}
	})
	t.Run("in a notification", func(t *testing.T) {
		sc := start(t, redact)
		sc.backend.send(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":{"x":"secret"}}}`)
		sc.client.gets(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":{"x":"***"}}}`)
		plain := `{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"a","status":"working"}}`
		sc.backend.send(plain)
		sc.client.gets(plain)
		for _, bad := range []string{
			`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","Result":{"x":"secret"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":{"x":"secret","x":1}}}`,
			`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":"secret"}}`,
		} {
			sc.backend.send(bad)
			sc.ping("9")
		}
		require.Equal(t, []Cause{BadMessage, BadMessage, BadMessage}, sc.watcher.causes())
	})
	t.Run("a blocked notification is dropped", func(t *testing.T) {
		sc := start(t, map[string]rule{"tools/call response": block("validation_failed", "g")})
		sc.backend.send(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a","result":{}}}`)
		require.Eventually(t, func() bool { return len(sc.watcher.causes()) == 1 }, patience, 1)
		sc.ping("9")
		require.Equal(t, []Cause{BlockedInside}, sc.watcher.causes())
	})
	t.Run("of a task that the client holds", func(t *testing.T) {
		sc := start(t, map[string]rule{"sampling/createMessage response": edit("secret", "***")})
		request := get(`"s"`, "sampling/createMessage", `{"task":{}}`)
		sc.backend.send(request)
		sc.client.gets(request)
		sc.client.send(result(`"s"`, `{"task":{"taskId":"c"}}`))
		sc.backend.gets(result(`"s"`, `{"task":{"taskId":"c"}}`))
		sc.backend.send(get("1", "tasks/result", `{"taskId":"c"}`))
		sc.client.gets(get("1", "tasks/result", `{"taskId":"c"}`))
		sc.client.send(result("1", `{"x":"secret"}`))
		sc.backend.gets(result("1", `{"x":"***"}`))
		for _, method := range []string{"tasks/result", "tasks/get"} {
			sc.backend.send(get("2", method, `{"taskId":"unknown"}`))
			sc.backend.gets(failure("2", "-32602", textUnknownTask))
		}
		sc.client.send(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"unknown","result":{}}}`)
		sc.ping("9")
		require.Equal(t, []Cause{UnknownTask, UnknownTask, UnknownTask}, sc.watcher.causes())
	})
}

func TestEmbeddedRequest(t *testing.T) {
	pending := func(requests string) string {
		return `{"resultType":"input_required","inputRequests":` + requests + `,"requestState":"s"}`
	}
	answered := func(t *testing.T, rules map[string]rule, answer string) (*scene, string) {
		sc := start(t, rules)
		sc.client.send(call("1", `{}`))
		sc.backend.gets(call("1", `{}`))
		sc.backend.send(result("1", answer))
		return sc, sc.client.next()
	}
	guard := map[string]rule{"sampling/createMessage request": edit("secret", "***"), "roots/list request": edit(`{}`, `{"r":1}`)}

	t.Run("is governed", func(t *testing.T) {
		sc, got := answered(t, guard, pending(`{ "a":`+sample+` ,"b": {"method":"roots/list"}, "c":{"method":"ping","params":{"t":"secret"}},"d":`+sample+`}`))
		require.Equal(t, result("1", pending(`{ "a":{"method":"sampling/createMessage","params":{"t":"***"}} ,"b": {"method":"roots/list","params":{"r":1}}, "c":{"method":"ping","params":{"t":"secret"}},"d":{"method":"sampling/createMessage","params":{"t":"***"}}}`)), got)
		require.Equal(t, abi.Receiving, sc.governor.operations()[0].Direction)
		require.Equal(t, Backend, sc.governor.operations()[0].Initiator)
	})
	t.Run("blocked, the whole result is", func(t *testing.T) {
		_, got := answered(t, map[string]rule{"sampling/createMessage request": block("validation_failed", "g")}, pending(`{"a":`+sample+`}`))
		require.Contains(t, got, `"error":{"code":-32602`)
		require.Contains(t, got, `"event":"sampling/createMessage","phase":"request","mayHaveRun":true,"interceptor":"g"`)
		require.NotContains(t, got, "secret")
	})
	t.Run("behind the chain of the result that carries it", func(t *testing.T) {
		rules := map[string]rule{"sampling/createMessage request": edit("secret", "***"), "tools/call response": replace(pending(`{"a":` + sample + `}`))}
		_, got := answered(t, rules, `{}`)
		require.Contains(t, got, `"t":"***"`)
	})
	t.Run("under escaped names", func(t *testing.T) {
		_, got := answered(t, guard, `{"inputReq\u0075ests":{"a":{"m\u0065thod":"sampling\/createMessage","params":{"t":"secret"}}}}`)
		require.Equal(t, result("1", `{"inputReq\u0075ests":{"a":{"m\u0065thod":"sampling\/createMessage","params":{"t":"***"}}}}`), got)
	})
	t.Run("malformed, nothing passes", func(t *testing.T) {
		for _, bad := range []string{
			`{"InputRequests":{"a":` + sample + `}}`, pending(`[` + sample + `]`), pending(`{"a":[]}`), pending(`{"a":{"params":{}}}`),
			pending(`{"a":{"method":1}}`), pending(`{"a":{"Method":"roots/list","method":"ping"}}`), pending(`{"a":{"method":"sampling/createMessage","params":[]}}`),
			pending(`{"a":{"method":"sampling/createMessage","params":{"t":1,"t":2}}}`),
		} {
			_, got := answered(t, guard, bad)
			require.Equal(t, failure("1", "-32603", textBadAnswer), got, bad)
		}
	})
	t.Run("inside a task", func(t *testing.T) {
		sc := start(t, guard)
		sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a"}}`)
		sc.backend.next()
		sc.backend.send(result("1", `{"status":"input_required","inputRequests":{"a":`+sample+`}}`))
		sc.client.gets(result("1", `{"status":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{"t":"***"}}}}`))
	})
	t.Run("nothing is looked for where nothing is governed", func(t *testing.T) {
		_, got := answered(t, map[string]rule{"tools/list request": block("x", "y"), "tools/list response": pass}, `{"InputRequests":1}`)
		require.NotEqual(t, result("1", `{"InputRequests":1}`), got)
		_, got = answered(t, nil, `{"InputRequests":1}`)
		require.Equal(t, result("1", `{"InputRequests":1}`), got)
	})
}

func TestEmbeddedAnswer(t *testing.T) {
	rules := map[string]rule{
		"sampling/createMessage response": edit("secret", "S"), "elicitation/create response": edit("secret", "E"), "roots/list response": edit("secret", "R"),
	}
	retry := func(answers string) string { return `{"name":"t","inputResponses":` + answers + `,"requestState":"s"}` }
	t.Run("is governed by its shape", func(t *testing.T) {
		for answer, want := range map[string]string{
			`{"roots":["secret"]}`: `{"roots":["R"]}`, `{"action":"accept","content":{"x":"secret"}}`: `{"action":"accept","content":{"x":"E"}}`,
			`{"role":"assistant","content":"secret"}`: `{"role":"assistant","content":"S"}`, `{"role":1,"action":2,"x":"secret"}`: `{"role":1,"action":2,"x":"E"}`,
		} {
			sc := start(t, rules)
			sc.client.send(call("1", retry(`{"k":`+answer+`}`)))
			sc.backend.gets(call("1", retry(`{"k":`+want+`}`)))
			for _, op := range sc.governor.operations() {
				require.Equal(t, abi.Sending, op.Direction)
			}
		}
	})
	t.Run("as the request of that name was", func(t *testing.T) {
		all := map[string]rule{"x/custom response": edit("secret", "X"), "x/custom request": pass}
		sc := start(t, all)
		sc.client.send(call("1", `{}`))
		sc.backend.next()
		sc.backend.send(result("1", `{"inputRequests":{"k":{"method":"x/custom"}}}`))
		sc.client.next()
		sc.client.send(call("2", retry(`{"k":{"y":"secret"}}`)))
		sc.backend.gets(call("2", retry(`{"k":{"y":"X"}}`)))
	})
	t.Run("in tasks/update", func(t *testing.T) {
		sc := start(t, rules)
		sc.client.send(`{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"a","inputResponses":{"k":{"roots":"secret"}}}}`)
		sc.backend.gets(`{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"a","inputResponses":{"k":{"roots":"R"}}}}`)
	})
	t.Run("refused", func(t *testing.T) {
		for bad, cause := range map[string]Cause{
			retry(`{"k":{"y":"secret"}}`): UnknownAnswer, retry(`{"k":[]}`): BadMessage, retry(`[]`): BadMessage, `{"InputResponses":{}}`: BadMessage,
			retry(`{"k":{"Roots":[]}}`): BadMessage,
		} {
			sc := start(t, rules)
			sc.client.send(call("1", bad))
			sc.client.gets(failure("1", "-32602", textBadAnswers))
			sc.ping("1")
			require.Equal(t, []Cause{cause}, sc.watcher.causes(), bad)
		}
	})
	t.Run("blocked", func(t *testing.T) {
		sc := start(t, map[string]rule{"roots/list response": block("validation_failed", "g")})
		sc.client.send(call("1", retry(`{"k":{"roots":[]}}`)))
		require.Contains(t, sc.client.next(), `"event":"roots/list","phase":"response","interceptor":"g"`)
		sc.ping("1")
	})
}

func TestNamesAreBounded(t *testing.T) {
	n := newNames(2)
	for _, id := range []string{"a", "b", "a", "c"} {
		n.addTask(Client, id, "m-"+id)
	}
	require.Equal(t, []string{"", "m-b", "m-c"}, []string{n.task(Client, "a"), n.task(Client, "b"), n.task(Client, "c")})
	require.Empty(t, n.task(Backend, "c"))
	n.addTask(Client, string(make([]byte, longName+1)), "m")
	require.Len(t, n.tasks[Client].of, 2)
	for range 20 {
		n.addInput("k", string(rune('a'+len(n.input("k")))))
	}
	require.Len(t, n.input("k"), maxMethods)
}

// A result that one reader takes for a task and another one does not would let
// the task's result pass as that of another method.
func TestTaskOf(t *testing.T) {
	for result, want := range map[string]string{
		`{"task":{"taskId":"a"}}`:                         "a",
		`{"resultType":"task","taskId":"a"}`:              "a",
		`{"resultType":"complete","taskId":"a"}`:          "",
		`{"task":"taskId"}`:                               "",
		`{"taskID":"a"}`:                                  "",
		`{"Task":{"ID":"a"}}`:                             "",
		`{"task":{"taskId":"a"},"Task":{}}`:               "refused",
		`{"Task":{"taskId":"a"}}`:                         "refused",
		`{"task":{"TaskId":"a"}}`:                         "refused",
		`{"task":{"taskId":"a","taskid":"b"}}`:            "refused",
		`{"ResultType":"task","taskId":"a"}`:              "refused",
		`{"resultType":"task","taskId":"a","TASKID":"b"}`: "refused",
	} {
		got, err := taskOf([]byte(result))
		if err != nil {
			got = "refused"
		}
		require.Equal(t, want, got, result)
	}
}
