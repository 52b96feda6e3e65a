package drover

// ConfigDiff is what another configuration would change.
type ConfigDiff struct {
	Changes []ConfigChange `json:"changes"`       // by key
	Restart []string       `json:"needs_restart"` // keys of them that a running controller refuses to change
	Fates   []Fate         `json:"instances"`     // what becomes of instances at once, and what their pools then still lack
}

// ConfigChange is a key of a configuration with another value. Secrets are hidden.
type ConfigChange struct {
	Key  string `json:"key"`            // such as pools.web.size
	From string `json:"from,omitempty"` // empty: it is not given, and there is no default to name
	To   string `json:"to,omitempty"`
}

// FateKind is what a changed configuration does to instances.
type FateKind string

// The kinds of fates.
const (
	FateDestroy FateKind = "destroy" // at once
	FateDrain   FateKind = "drain"   // they finish their jobs, and are then destroyed
	FateReplace FateKind = "replace" // in steps, as their pool's replace: says
	FateStop    FateKind = "stop"    // they are kept, stopped
	FateStart   FateKind = "start"   // they were stopped
	FateCreate  FateKind = "create"
	FateWait    FateKind = "wait" // they are wanted, and cannot be created yet
)

// Fates lists the kinds in the order in which they are shown.
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
	Names  []string `json:"names,omitempty"` // of those that there are: the first of them
	Reason *Reason  `json:"reason,omitempty"`
}
