package streamable_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain runs the backends of the tests in processes of their own: this binary
// again, told by its environment what to be.
func TestMain(m *testing.M) {
	switch os.Getenv("STREAMABLE_TEST_SERVER") {
	case "raw":
		(&rawServer{out: os.Stdout}).serve(os.Stdin)
	case "sdk":
		_ = sdkServer().Run(context.Background(), &mcp.StdioTransport{})
	case "child":
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	default:
		os.Exit(m.Run())
	}
}

// rawServer is an MCP server that does what the tests need, and writes its
// messages by hand.
type rawServer struct {
	out       io.Writer
	mu        sync.Mutex
	cancelled []string
	waiting   map[string]chan json.RawMessage
}

type rawMessage struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
}

type rawParams struct {
	Name            string
	ProtocolVersion string
	RequestID       json.RawMessage `json:"requestId"`
	Arguments       json.RawMessage
	Meta            struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func (s *rawServer) serve(in io.Reader) {
	s.waiting = map[string]chan json.RawMessage{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var m rawMessage
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"a line that is no JSON"}}`)
			continue
		}
		var p rawParams
		_ = json.Unmarshal(m.Params, &p)
		switch m.Method {
		case "":
			s.mu.Lock()
			if c := s.waiting[string(m.ID)]; c != nil {
				if m.Result == nil {
					m.Result = m.Error
				}
				c <- m.Result
			}
			s.mu.Unlock()
		case "initialize":
			if p.ProtocolVersion == "refuse me" {
				s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unsupported"}}`, m.ID)
				continue
			}
			s.say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`, m.ID, p.ProtocolVersion)
		case "notifications/cancelled":
			s.mu.Lock()
			s.cancelled = append(s.cancelled, string(p.RequestID))
			s.mu.Unlock()
		case "ping":
			s.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		case "tools/call":
			go s.call(&m, &p)
		case "subscriptions/listen":
			s.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"%s"}}}`, m.ID)
		default:
			if m.ID != nil {
				s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method: %s"}}`, m.ID, m.Method)
			}
		}
	}
}

func (s *rawServer) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// ask sends a request and waits for what is answered.
func (s *rawServer) ask(id, method, params string) json.RawMessage {
	c := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.waiting[id] = c
	s.mu.Unlock()
	s.say(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	return <-c
}

func (s *rawServer) call(m *rawMessage, p *rawParams) {
	result := func(text string) {
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, text)
	}
	switch p.Name {
	case "echo":
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"echo":%s}}`, m.ID, p.Arguments)
	case "pid":
		result(fmt.Sprint(os.Getpid()))
	case "slow":
		var ms int
		_ = json.Unmarshal(p.Arguments, &ms)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		result("slow")
	case "hang":
		s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, p.Meta.Token)
	case "cancelled":
		s.mu.Lock()
		all := strings.Join(s.cancelled, " ")
		s.mu.Unlock()
		result(all)
	case "die":
		os.Exit(3)
	case "child":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "STREAMABLE_TEST_SERVER=child")
		in, err := child.StdinPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			result(err.Error())
			return
		}
		result(fmt.Sprint(child.Process.Pid))
		_ = child.Wait()
		_ = in.Close()
	case "work":
		// Progress, a question, and more progress before the answer.
		s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, p.Meta.Token)
		answer := s.ask(`"q`+strings.Trim(string(m.ID), `"`)+`"`, "sampling/createMessage", `{"messages":[],"maxTokens":1}`)
		s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2}}`, p.Meta.Token)
		s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"answer":%s}}`, m.ID, answer)
	case "flood":
		// Much more than a client that does not read can have waiting for it.
		filler := strings.Repeat("x", 64<<10)
		for i := range 1000 {
			s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`, p.Meta.Token, i, filler)
		}
		result("flooded")
	case "say":
		// Lines as they are, then the answer.
		var raw []string
		_ = json.Unmarshal(p.Arguments, &raw)
		for _, line := range raw {
			s.say("%s", strings.ReplaceAll(line, "ID", string(m.ID)))
		}
		result("said")
	default:
		s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool"}}`, m.ID)
	}
}
