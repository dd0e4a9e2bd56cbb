package chain

import (
	"encoding/json"
	"time"

	"github.com/weir-mcp/weir/abi"
)

// Effect is what became of one step.
type Effect string

// The effects.
const (
	EffectPassed    Effect = "passed"    // a verdict that does not block; a mutation that changes nothing
	EffectApplied   Effect = "applied"   // the released payload has the change
	EffectDiscarded Effect = "discarded" // a change that was thrown away, since nothing was released
	EffectAudited   Effect = "audited"   // in audit mode: a rejection, a change or a failure without effect
	EffectIgnored   Effect = "ignored"   // a failure that failOpen let pass
	EffectBlocked   Effect = "blocked"   // a rejection or a failure that blocks
	EffectCancelled Effect = "cancelled" // stopped since the requester has gone
	EffectStarted   Effect = "started"   // a sink that is on its way
	EffectRecorded  Effect = "recorded"  // a sink that is done, in a [SinkReport] only
	EffectLost      Effect = "lost"      // a sink that failed or was never started
)

// ReasonRejected is the [Abort.Reason] of a verdict.
const ReasonRejected = "rejected"

// StepResult is what one step did.
type StepResult struct {
	Name     string // as in [Step.Name]
	Host     string
	Type     abi.Type
	Mode     abi.Mode
	FailOpen bool
	Effect   Effect
	// Result is the well-formed answer, nil for a failure and for a sink that
	// has been started.
	Result *abi.Result
	// Err says why there is no result. Its Interceptor is the name that the
	// host knows.
	Err *abi.Error
	// Duration is the time until the answer, or until it was given up.
	Duration time.Duration
}

// Abort says who stopped an operation and why.
type Abort struct {
	// Interceptor is empty when a host could not be listed.
	Interceptor string
	Host        string
	Type        abi.Type
	// Reason is [ReasonRejected] for a verdict, an [abi.Reason] for a failure and a
	// [DiscoveryReason] where discovery failed.
	Reason string
	// Detail says more where discovery failed. It is for the operator only.
	Detail string
	// Messages are the findings of the verdict. They cross to the requester only
	// where protocol.md §6 (Blocked) allows it.
	Messages []abi.Message
}

// Summary counts the findings of all validators, audited ones included: each
// message under its own severity, and a rejection without messages once under
// the severity of its verdict. What has no known severity counts as an error
// where its validator rejects, and as information where it does not.
type Summary struct {
	Errors, Warnings, Infos int
}

// Outcome is what became of an operation. It is never a wire message.
type Outcome struct {
	Status    abi.Status
	Event     string
	Phase     abi.Phase
	Direction abi.Direction
	// Results holds each step that was called, or that counts as a failure, in
	// plan order. Steps that were never reached are not in it.
	Results []StepResult
	// FinalPayload is what to forward, nil unless released. Where no mutation
	// changed anything it is the very slice that came in.
	FinalPayload json.RawMessage
	// Modified says that FinalPayload has other bytes than what came in.
	Modified   bool
	Validation Summary
	// TotalDuration is the time that [Executor.Execute] took.
	TotalDuration time.Duration
	// Aborted is nil when the operation was released or cancelled.
	Aborted *Abort
}

// Released reports whether the operation goes on with FinalPayload.
func (o *Outcome) Released() bool { return o.Status == abi.StatusSuccess }
