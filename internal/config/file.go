package config

import (
	"strings"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// DefaultTimeout is the aggregate deadline of one plan where the file sets none
// (config.md).
const DefaultTimeout = 10 * time.Second

// File is what weir.yaml says, with the defaults of config.md filled in.
type File struct {
	// Path is the file's path as given, empty when there is no file.
	Path string
	// Backend is nil when the file names none.
	Backend *Backend
	// Boundary is the side that is trusted; [Client] by default.
	Boundary Boundary
	// Timeout is the aggregate deadline of one plan, above 0 and at most
	// [MaxTimeout].
	Timeout time.Duration
	// Hosts in the order of the file, which breaks ties between equal priorities
	// and names (protocol.md §5). Their names are unique.
	Hosts []Host
	// Interceptors in the order of the file. Whether two of them contradict each
	// other is judged by the planner.
	Interceptors []Entry
	Blocked      Blocked
	Listen       Listen
	// Expose also answers interceptors/list and interceptor/invoke for all hosts;
	// false by default. It needs tokens (config.md).
	Expose      bool
	Passthrough Passthrough
	// Trust is nil when the file does not speak of it: no signature is looked at.
	Trust *Trust
	// LogMessages lets what interceptors say of a payload into the log, which
	// never holds payloads themselves; false by default.
	LogMessages bool
	// Cache says whether the compile cache is used; true by default.
	Cache bool
	// ConsumedEnv is the sorted names of the variables that the file expands or
	// names. The backend does not inherit them (config.md).
	ConsumedEnv []string
}

// Default is the configuration without a file.
func Default() *File {
	return &File{
		Boundary: Client, Timeout: DefaultTimeout, Blocked: Blocked{Details: DetailsAuto}, Cache: true,
		Listen:      Listen{Limits: ListenLimits{Body: 4 << 20, Sessions: 1000, Concurrency: 256}},
		Passthrough: Passthrough{Notifications: []string{"*"}},
	}
}

// Boundary says which side of the gateway is trusted (protocol.md §6).
type Boundary string

// The boundaries.
const (
	Client Boundary = "client"
	Server Boundary = "server"
)

// Details says who is told which interceptor blocked and why (protocol.md §6
// "Blocked").
type Details string

// The settings of Details.
const (
	DetailsAuto   Details = "auto"   // a requester on the guarded side only
	DetailsAlways Details = "always" // every requester
	DetailsNever  Details = "never"  // no requester
)

// Blocked says how a blocked operation is answered.
type Blocked struct {
	Details Details // [DetailsAuto] by default
	// ToolResult answers a blocked tools/call with a result whose isError is
	// true instead of a JSON-RPC error; false by default.
	ToolResult bool
}

// Trust says whose signatures of modules count, for all folders.
type Trust struct {
	// Keys are files of public keys, at least one. A relative one in the file is
	// taken from the file's folder.
	Keys []Text
	// RequireSigned refuses modules without a signature; false by default.
	RequireSigned bool
	Source        Source
}

// Backend is the MCP server that the gateway stands for: either a command over
// stdio, or a URL.
type Backend struct {
	// Command is the program and its arguments; empty beside a URL.
	Command []Text
	// URL is an http or https URL without user info or fragment, of an MCP
	// endpoint; Headers go with every request to it.
	URL     Text
	Headers map[string]Text
	// Dir is the folder in which it runs, that of the file; empty means the
	// current one.
	Dir string
	// Env is set on top of the inherited environment.
	Env map[string]Text
	// Source is where it was configured.
	Source Source
}

// String is the backend as it was written, for messages.
func (b *Backend) String() string {
	if !b.URL.IsZero() {
		return b.URL.String()
	}
	words := make([]string, len(b.Command))
	for i, w := range b.Command {
		words[i] = w.String()
	}
	return strings.Join(words, " ")
}

// PayloadStyle is the shape in which a host gets the payload of a request
// (protocol.md §3).
type PayloadStyle string

// The payload styles.
const (
	Bare     PayloadStyle = "bare"     // the params; the default
	Envelope PayloadStyle = "envelope" // {"method":…,"params":…}
)

// Host is one host of interceptors. Exactly one of Modules, URL and Command is
// set.
type Host struct {
	// Name matches [a-z0-9-]+ and is unique.
	Name string
	// Modules is a folder of modules. A relative one in the file is taken from
	// the file's folder.
	Modules Text
	// URL is an http or https URL without user info or fragment; Headers go
	// with every request to it.
	URL     Text
	Headers map[string]Text
	// Command is an interceptor server over stdio. It gets PATH, HOME, LANG,
	// TMPDIR and Env, nothing else (config.md).
	Command []Text
	// Dir is the folder in which the command runs, that of the file; empty
	// means the current one.
	Dir string
	Env map[string]Text
	// Payload is for URL and Command; a folder always gets bare payloads.
	Payload PayloadStyle
	// Request sends the request along with an invocation on its response; for URL
	// and Command, a folder always has it. False by default.
	Request bool
	// FailOpen lets operations go on while the host cannot be listed; false by
	// default.
	FailOpen bool
	// Limits are for each module of the folder.
	Limits Limits
	// Files are options for single files of the folder, by file name.
	Files  map[string]FileOptions
	Source Source
}

// FileOptions are the options of one file in a folder of modules.
type FileOptions struct {
	// SHA256 is the pin: 64 lower-case hex digits that the file's digest must
	// equal, or empty.
	SHA256 string
	Grants Grants
	// Limits win over those of the host, member by member; see [Limits.Over].
	Limits Limits
	Source Source
}

// Grants is what a module may reach (abi.md).
type Grants struct {
	Clock bool
	// Env is the names of the variables that the module sees; sorted, unique.
	Env []string
	// KV is whose values of the store the module sees; empty: it gets no store.
	KV Scope
}

// Scope says which callers share what a module keeps in the store (abi.md,
// grant kv).
type Scope string

// The scopes of the grant kv.
const (
	ScopePrincipal Scope = "principal" // the default
	ScopeSession   Scope = "session"
	ScopeModule    Scope = "module"
)

// Limits are the limits of a module that the file sets (abi.md "Limits"). Zero
// means not set: what is set is above zero.
type Limits struct {
	Module   int64         // bytes of the file
	Memory   int64         // bytes of linear memory
	Table    uint32        // elements
	Timeout  time.Duration // running time of a call
	Load     time.Duration // start section, _initialize and describe together
	Input    int64         // bytes of the payload going in
	Output   int64         // bytes of the answer coming out
	LogLines int           // lines a call
	LogLine  int64         // bytes a line
	Calls    int           // calls at once
	Queue    int           // calls that wait
	Fuel     int64         // units of fuel that a call may spend (package meter)
}

// Over is l with the members that it does not set taken from base.
func (l Limits) Over(base Limits) Limits {
	return Limits{
		Module:   set(l.Module, base.Module),
		Memory:   set(l.Memory, base.Memory),
		Table:    set(l.Table, base.Table),
		Timeout:  set(l.Timeout, base.Timeout),
		Load:     set(l.Load, base.Load),
		Input:    set(l.Input, base.Input),
		Output:   set(l.Output, base.Output),
		LogLines: set(l.LogLines, base.LogLines),
		LogLine:  set(l.LogLine, base.LogLine),
		Calls:    set(l.Calls, base.Calls),
		Queue:    set(l.Queue, base.Queue),
		Fuel:     set(l.Fuel, base.Fuel),
	}
}

func set[T comparable](own, base T) T {
	var unset T
	if own != unset {
		return own
	}
	return base
}

// Entry is one entry of "interceptors": policy, configuration, alias or
// requirement (config.md). Nil and empty members are not set.
type Entry struct {
	// Interceptor is an exact name or "*".
	Interceptor string
	Host        string // empty: any host
	// As makes one more copy under this name.
	As           string
	Enabled      *bool
	Mode         *abi.Mode
	FailOpen     *bool
	PriorityHint *abi.PriorityHint
	Timeout      *time.Duration // above 0, at most [MaxTimeout]
	// Config replaces the interceptor's configuration: an object, numbers as
	// they were spelled, members in their order.
	Config JSON
	// Hooks narrow; nil is not set, an empty list matches nothing.
	Hooks    abi.Hooks
	Required bool
	Type     abi.Type
	Source   Source
}

// Source is where in which file something was configured, as
// "weir.yaml:12:5", or on the command line.
type Source string
