package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is remembered of names decides which guard an answer meets, so no peer
// may talk it into another one.

func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func TestATaskKeepsItsMaker(t *testing.T) {
	long := strings.Repeat("t", longName+1)
	for name, test := range map[string]struct {
		made, again string // the tasks that two results name
		refused     int    // which of them is refused
	}{
		"an id that another method's result names again": {`{"taskId":"T"}`, `{"taskId":"T"}`, 2},
		"another id":                        {`{"taskId":"T"}`, `{"taskId":"U"}`, 0},
		"an id too long to be remembered":   {`{"taskId":"T"}`, `{"taskId":"` + long + `"}`, 2},
		"that of tools/call may be as long": {`{"taskId":"` + long + `"}`, `{"taskId":"U"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sc := start(t, map[string]rule{"tools/call response": edit("secret", "***")})
			for i, call := range []struct{ method, task string }{{"tools/call", test.made}, {"prompts/list", test.again}} {
				id := fmt.Sprint(i + 1)
				sc.client.send(request(id, call.method, `{"task":{}}`))
				sc.backend.next()
				answer := result(id, `{"prompts":[],"task":`+call.task+`}`)
				sc.backend.send(answer)
				if test.refused == i+1 {
					answer = failure(id, "-32603", textBadAnswer)
				}
				sc.client.gets(answer)
			}
			sc.client.send(request("3", "tasks/result", test.made))
			sc.backend.next()
			sc.backend.send(result("3", `{"x":"secret"}`))
			sc.client.gets(result("3", `{"x":"***"}`))
		})
	}
	t.Run("of a task that the client holds", func(t *testing.T) {
		sc := start(t, map[string]rule{"sampling/createMessage response": edit("secret", "***")})
		for i, method := range []string{"sampling/createMessage", "roots/list"} {
			id := fmt.Sprint(i + 1)
			sc.backend.send(request(id, method, `{"task":{}}`))
			sc.client.next()
			sc.client.send(result(id, `{"roots":[],"task":{"taskId":"c"}}`))
			line := sc.backend.next()
			require.Equal(t, i == 1, strings.Contains(line, textBadAnswer), line)
		}
		sc.backend.send(request("3", "tasks/result", `{"taskId":"c"}`))
		sc.client.next()
		sc.client.send(result("3", `{"x":"secret"}`))
		sc.backend.gets(result("3", `{"x":"***"}`))
	})
}

// There are readers that go by the method alone.
func TestAGovernedRequestWithoutAnID(t *testing.T) {
	sc := start(t, map[string]rule{"tools/call request": pass, "sampling/createMessage request": pass})
	without := func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `","params":{"name":"x"}}` }
	sc.client.send(without("tools/call"), without("tools/list"), without("notifications/progress"))
	sc.backend.gets(without("tools/list"), without("notifications/progress"))
	sc.backend.send(without("sampling/createMessage"), without("notifications/message"))
	sc.client.gets(without("notifications/message"))
	sc.ping("1")
	require.Equal(t, []Cause{BadMessage, BadMessage}, sc.watcher.causes())
}

func TestANameThatStandsForTooMuch(t *testing.T) {
	guard := map[string]rule{"sampling/createMessage request": pass, "sampling/createMessage response": edit("secret", "***")}
	ask := func(sc *scene, id int, method string) string {
		sc.client.send(request(fmt.Sprint(id), "tools/call", `{"name":"x"}`))
		sc.backend.next()
		sc.backend.send(result(fmt.Sprint(id), `{"inputRequests":{"n":{"method":"`+method+`","params":{}}}}`))
		return sc.client.next()
	}
	t.Run("many methods", func(t *testing.T) {
		sc := start(t, guard)
		for i := range maxMethods {
			require.NotContains(t, ask(sc, i, fmt.Sprintf("junk/m%d", i)), textBadAnswer)
		}
		require.Contains(t, ask(sc, 100, "sampling/createMessage"), textBadAnswer, "its answer would meet none of its guards")
		require.NotContains(t, ask(sc, 101, "junk/m0"), textBadAnswer)
	})
	t.Run("a long method", func(t *testing.T) {
		sc := start(t, guard)
		require.Contains(t, ask(sc, 1, "junk/"+strings.Repeat("m", longName)), textBadAnswer)
	})
}

func TestWhatARequestKeepsIsBounded(t *testing.T) {
	long := strings.Repeat("l", 1000)
	for name, message := range map[string]string{
		"its id":     `{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`,
		"its method": request("1", long, "{}"),
		"the message that its payload is a part of": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"x":"` + long + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			sc := start(t, map[string]rule{"tools/call response": pass}, func(o *Options) { o.Limits.KeptBytes = 900 })
			sc.client.send(message)
			sc.backend.gets(message)
			sc.client.send(request("2", "ping", "{}"))
			sc.client.gets(failure("2", "-32603", textFull))
		})
	}
	t.Run("a mark keeps its key", func(t *testing.T) {
		table := newTable(Limits{}.withDefaults())
		f := &flight{key: "1", spelled: long, method: long, payload: []byte("{}"), size: 2002, state: asked}
		require.Equal(t, entered, table.enter(f))
		require.Equal(t, forward, table.withdraw("1", nil))
		require.Equal(t, &flight{key: "1", state: marked}, table.flights["1"])
		require.Zero(t, table.kept)
		require.False(t, table.finish(f))
		require.Equal(t, reused, table.enter(&flight{key: "1"}))
		require.Equal(t, forward, table.withdraw("1", nil))
		require.Equal(t, 1, table.marks)
	})
}
