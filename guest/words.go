package guest

import "github.com/weir-mcp/weir/abi"

// The words of package abi that every module uses, under this package's name.
type (
	// Descriptor says what an interceptor is called, what it hooks and how its
	// author would have it run (protocol.md §2). Its Type is set by the function
	// that registers it. Its ConfigSchema is derived from the config type when
	// it is nil (see [SchemaOf]).
	Descriptor = abi.Descriptor
	// Hooks is the list of events and phases in which an interceptor runs.
	Hooks = abi.Hooks
	// Phase is [Request] or [Response].
	Phase = abi.Phase
	// Context says on whose behalf an operation runs. Every member may be empty.
	Context = abi.Context
	// Principal is the caller of an operation.
	Principal = abi.Principal
	// Message is one finding of a validator. An empty Severity means error.
	Message = abi.Message
	// Severity weighs a finding: [SeverityWarn] and [SeverityInfo] do not block,
	// everything else does (protocol.md §5).
	Severity = abi.Severity
)

// The phases of an operation.
const (
	Request  = abi.Request
	Response = abi.Response
)

// The severities of a [Message].
const (
	SeverityError = abi.SeverityError
	SeverityWarn  = abi.SeverityWarn
	SeverityInfo  = abi.SeverityInfo
)

// The events of MCP (protocol.md §1).
const (
	ToolsList          = abi.ToolsList
	ToolsCall          = abi.ToolsCall
	LLMCompletion      = abi.LLMCompletion
	PromptsList        = abi.PromptsList
	PromptsGet         = abi.PromptsGet
	ResourcesList      = abi.ResourcesList
	ResourcesRead      = abi.ResourcesRead
	ResourcesSubscribe = abi.ResourcesSubscribe
	SamplingCreate     = abi.SamplingCreate
	ElicitationCreate  = abi.ElicitationCreate
	RootsList          = abi.RootsList
)

// OnRequest hooks the request phase of the given events. An event is a method
// or a pattern in which "*" stands for any run of characters.
func OnRequest(events ...string) Hooks { return abi.On(abi.Request, events...) }

// OnResponse hooks the response phase of the given events.
func OnResponse(events ...string) Hooks { return abi.On(abi.Response, events...) }

// OnBoth hooks both phases of the given events.
func OnBoth(events ...string) Hooks { return abi.OnBoth(events...) }

// Priority orders a mutator among all others, in both phases: lower runs first,
// 0 is the default.
func Priority(n int32) abi.PriorityHint { return abi.Priority(n) }
