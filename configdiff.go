package drover

// ConfigDiff is what another configuration would change.
type ConfigDiff struct {
	Changes []ConfigChange `json:"changes"`       // by key
	Restart []string       `json:"needs_restart"` // the keys that a running controller refuses to change
	Fates   []Fate         `json:"instances"`     // what happens to instances at once, and what their pools still lack afterwards
}

// ConfigChange is a configuration key whose value changes. Secrets are hidden.
type ConfigChange struct {
	Key  string `json:"key"`            // such as pools.web.size
	From string `json:"from,omitempty"` // empty: the key is not set, and has no default to show
	To   string `json:"to,omitempty"`
}

// FateKind is what a changed configuration does to instances.
type FateKind string

// The kinds of fates.
const (
	FateDestroy FateKind = "destroy" // at once
	FateDrain   FateKind = "drain"   // they finish their jobs, and are then destroyed
	FateReplace FateKind = "replace" // in steps, as their pool's key replace specifies
	FateStop    FateKind = "stop"    // they are kept, but stopped
	FateStart   FateKind = "start"   // they were kept stopped
	FateCreate  FateKind = "create"
	FateWait    FateKind = "wait" // they are wanted, but cannot be created yet
)

// Fates lists the kinds in display order.
func Fates() []FateKind {
	return []FateKind{FateDestroy, FateDrain, FateReplace, FateStop, FateStart, FateCreate, FateWait}
}

// Fate is what happens to similar instances.
type Fate struct {
	Kind   FateKind `json:"kind"`
	Count  int      `json:"count"`
	Pool   string   `json:"pool,omitempty"`
	Cloud  string   `json:"cloud,omitempty"`
	Zone   string   `json:"zone,omitempty"`
	Type   string   `json:"type,omitempty"`
	Names  []string `json:"names,omitempty"` // the first few of them, if they exist already
	Reason *Reason  `json:"reason,omitempty"`
}
