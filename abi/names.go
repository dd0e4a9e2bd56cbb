package abi

// This file holds every name that the drafts of SEP-2624 may still change, so
// that such a change is one edit. The rest of the project refers to them.

// The methods of an interceptor server (protocol.md §2, §3) and the key of its
// capability under capabilities.extensions (protocol.md §4).
const (
	MethodList   = "interceptors/list"
	MethodInvoke = "interceptor/invoke"
	ExtensionKey = "io.modelcontextprotocol/interceptors"
)

// MetaRequest is the member of an invocation's _meta that holds the payload of
// the request that a response answers, bare: what a module gets as "request"
// (abi.md). It goes to hosts whose configuration asks for it. The drafts have no
// name for it; the prefix is ours, as MCP wants of such a member.
const MetaRequest = "io.github.weir-mcp/request"

// Type says what an interceptor may do (protocol.md §1).
type Type string

// The three types of interceptors.
const (
	Validation Type = "validation" // decides
	Mutation   Type = "mutation"   // returns a replacement payload
	Sink       Type = "sink"       // reacts; can neither block nor change anything
)

// Valid reports whether t is one of the three types.
func (t Type) Valid() bool { return t == Validation || t == Mutation || t == Sink }

// Mode says whether an interceptor's answers count (protocol.md §2).
type Mode string

// The modes. The zero value of Mode means Active.
const (
	Active Mode = "active"
	Audit  Mode = "audit" // recorded, never applied and never blocking

	modeEnforce = "enforce" // an older spelling of active, read but not written
)

// Phase is the half of an operation that an interceptor sees (protocol.md §1).
type Phase string

// The phases.
const (
	Request  Phase = "request"
	Response Phase = "response"

	phaseBoth = "both" // read in hooks, written as two hooks
)

// Valid reports whether p is one of the two phases.
func (p Phase) Valid() bool { return p == Request || p == Response }

// Severity grades a verdict or a message. An unknown or absent severity of a
// verdict blocks as SeverityError does (protocol.md §5).
type Severity string

// The severities.
const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
	SeverityInfo  Severity = "info"
)

// The MCP methods that are events (protocol.md §1). Further events are custom
// ones, see [IsEvent].
const (
	ToolsList          = "tools/list"
	ToolsCall          = "tools/call"
	PromptsList        = "prompts/list"
	PromptsGet         = "prompts/get"
	ResourcesList      = "resources/list"
	ResourcesRead      = "resources/read"
	ResourcesSubscribe = "resources/subscribe"
	SamplingCreate     = "sampling/createMessage"
	ElicitationCreate  = "elicitation/create"
	RootsList          = "roots/list"
	LLMCompletion      = "llm/completion"
)

// JSON-RPC error codes of an interceptor server (protocol.md §3).
const (
	CodeInvalidParams = -32602
	CodeInternal      = -32603
	CodeTimeout       = -32000
)

// Reason says why an invocation has no result (protocol.md §3, Errors).
type Reason string

// The reasons. ReasonParams and ReasonConfig go out as -32602, ReasonTimeout
// as -32000, all others as -32603.
const (
	ReasonParams          Reason = "params"
	ReasonConfig          Reason = "config"
	ReasonTimeout         Reason = "timeout"
	ReasonTrap            Reason = "trap"
	ReasonExit            Reason = "exit"
	ReasonMemory          Reason = "memory"
	ReasonStack           Reason = "stack"
	ReasonFuel            Reason = "fuel"
	ReasonBusy            Reason = "busy"
	ReasonPayloadTooLarge Reason = "payload_too_large"
	ReasonOutputTooLarge  Reason = "output_too_large"
	ReasonBadOutput       Reason = "bad_output"
	ReasonGuest           Reason = "guest"
	ReasonUnavailable     Reason = "unavailable"
	ReasonCancelled       Reason = "cancelled"
)

// Names of the module ABI (abi.md, Flavour 1).
const (
	ABIVersion = 1

	ExportMarkerPrefix = "weir_abi_v"
	ExportMarker       = "weir_abi_v1"
	ExportMemory       = "memory"
	ExportDescribe     = "weir_describe"
	ExportInvoke       = "weir_invoke"
	ExportInitialize   = "_initialize"
	ExportWarmup       = "weir_warmup"
	ExportReseed       = "weir_reseed"
	ExportStart        = "_start"

	ImportModule = "weir"
	ImportInput  = "input"
	ImportOutput = "output"
	ImportLog    = "log"

	ImportKVGet    = "kv_get"
	ImportKVSet    = "kv_set"
	ImportKVAdd    = "kv_add"
	ImportKVDelete = "kv_delete"
)

// Bounds of the grant kv, in bytes (abi.md "What a module can reach").
const (
	MaxKVKey   = 256
	MaxKVValue = 64 << 10
)

// What the functions of the grant kv return besides 0 and, of kv_get, lengths.
const (
	KVAbsent      int32 = -1 // the key is not there
	KVUnavailable int32 = -2 // no store, no room in it, or nobody to keep it for
	KVTooBig      int32 = -3 // the key, the value or the sum
	KVInvalid     int32 = -4 // a TTL below 0, or kv_add on what is no number
)

// Member names of the JSON objects.
const (
	keyName            = "name"
	keyVersion         = "version"
	keyDescription     = "description"
	keyType            = "type"
	keyHooks           = "hooks"
	keyHook            = "hook"
	keyEvents          = "events"
	keyPhase           = "phase"
	keyMode            = "mode"
	keyFailOpen        = "failOpen"
	keyPriorityHint    = "priorityHint"
	keyCompat          = "compat"
	keyMinProtocol     = "minProtocol"
	keyMaxProtocol     = "maxProtocol"
	keyConfigSchema    = "configSchema"
	keyInterceptors    = "interceptors"
	keyNextCursor      = "nextCursor"
	keyCursor          = "cursor"
	keyRequest         = "request"
	keyResponse        = "response"
	keyEvent           = "event"
	keyPayload         = "payload"
	keyConfig          = "config"
	keyTimeoutMs       = "timeoutMs"
	keyContext         = "context"
	keyPrincipal       = "principal"
	keyID              = "id"
	keyClaims          = "claims"
	keyTraceID         = "traceId"
	keySpanID          = "spanId"
	keySessionID       = "sessionId"
	keyTimestamp       = "timestamp"
	keyInterceptor     = "interceptor"
	keyDurationMs      = "durationMs"
	keyInfo            = "info"
	keyValid           = "valid"
	keySeverity        = "severity"
	keyMessages        = "messages"
	keyModel           = "model"
	keyMaxTokens       = "maxTokens"
	keyTemperature     = "temperature"
	keyMetadata        = "metadata"
	keyRole            = "role"
	keyContent         = "content"
	keyText            = "text"
	keyStopReason      = "stopReason"
	keyUsage           = "usage"
	keyInputTokens     = "inputTokens"
	keyOutputTokens    = "outputTokens"
	keyMessage         = "message"
	keyPath            = "path"
	keySuggestions     = "suggestions"
	keyValue           = "value"
	keyModified        = "modified"
	keyRecorded        = "recorded"
	keyMetrics         = "metrics"
	keyResult          = "result"
	keyError           = "error"
	keyData            = "data"
	keyReason          = "reason"
	keyAdvertisedHooks = "advertisedHooks"
	keyMethod          = "method"
	keyParams          = "params"
	keySupportedEvents = "supportedEvents"
)
