package drover

import "slices"

// InstanceState is where an instance is in its life.
type InstanceState string

// The states of an instance, in their usual order.
const (
	InstanceUnknown  InstanceState = "unknown"  // listed by the cloud, but silent since the controller started
	InstanceCreating InstanceState = "creating" // requested; the cloud has not answered yet
	InstanceBooting  InstanceState = "booting"  // exists; its boot has not yet succeeded
	InstanceIdle     InstanceState = "idle"
	InstanceRunning  InstanceState = "running"  // has at least one live attempt
	InstanceStopped  InstanceState = "stopped"  // kept, but not running
	InstanceStopping InstanceState = "stopping" // being destroyed, still listed
	InstanceGone     InstanceState = "gone"     // the cloud no longer lists it; its bill is final
)

var instanceNext = map[InstanceState][]InstanceState{
	InstanceUnknown:  {InstanceBooting, InstanceIdle, InstanceRunning, InstanceStopped, InstanceStopping, InstanceGone},
	InstanceCreating: {InstanceBooting, InstanceUnknown, InstanceStopping, InstanceGone},
	InstanceBooting:  {InstanceIdle, InstanceRunning, InstanceUnknown, InstanceStopping, InstanceGone},
	InstanceIdle:     {InstanceRunning, InstanceUnknown, InstanceStopped, InstanceStopping, InstanceGone},
	InstanceRunning:  {InstanceIdle, InstanceUnknown, InstanceStopping, InstanceGone},
	InstanceStopped:  {InstanceBooting, InstanceUnknown, InstanceStopping, InstanceGone},
	InstanceStopping: {InstanceGone},
	InstanceGone:     nil,
}

// CanBecome reports whether an instance in s may pass to next directly.
func (s InstanceState) CanBecome(next InstanceState) bool {
	return slices.Contains(instanceNext[s], next)
}

// Billed reports whether an instance in this state may cost money.
func (s InstanceState) Billed() bool { return s != InstanceGone }

// Ready reports whether an instance in this state can be given work at once.
func (s InstanceState) Ready() bool { return s == InstanceIdle || s == InstanceRunning }

// IdleBehavior is what an operator wants an instance to do, whatever its state.
type IdleBehavior string

// The idle behaviours. Hold overrides everything that Drover would do by itself.
const (
	IdleRun   IdleBehavior = "run"
	IdleHold  IdleBehavior = "hold"  // start nothing, destroy nothing
	IdleDrain IdleBehavior = "drain" // finish what runs, then destroy
)

// Notice is a cloud's announcement that it will take an instance back.
type Notice struct {
	Cause    string `json:"cause"`              // in the cloud's words, such as "spot interruption"
	Deadline Time   `json:"deadline,omitempty"` // by the instance's clock; 0 if the cloud does not report it
}

// Addresses are where an instance can be reached; empty until known. They may change during its life.
type Addresses struct {
	Private string `json:"private,omitempty"` // host or host:port
	Public  string `json:"public,omitempty"`
	User    string `json:"user,omitempty"` // the user to log in as
}

// Verb is an operator's command for an instance.
type Verb string

// The operator's verbs.
const (
	VerbDrain   Verb = "drain"   // finish what runs, then destroy it
	VerbHold    Verb = "hold"    // start nothing, and do not destroy it
	VerbRelease Verb = "release" // accept work again
	VerbKill    Verb = "kill"    // destroy it now, whatever runs
)

// Told returns the participle of a verb, such as "held"; empty if there is no such verb.
func (v Verb) Told() string {
	switch v {
	case VerbDrain:
		return "drained"
	case VerbHold:
		return "held"
	case VerbRelease:
		return "released"
	case VerbKill:
		return "killed"
	}
	return ""
}

// Verbs lists the operator's verbs.
func Verbs() []Verb { return []Verb{VerbDrain, VerbHold, VerbRelease, VerbKill} }
