package fleet

import "drover"

// Sighting is an instance as its cloud lists it.
type Sighting struct {
	ProviderID   string              `json:"provider_id"`
	Name         string              `json:"name"`
	ProviderType string              `json:"provider_type"`
	Type         string              `json:"type"` // from its tag
	Zone         string              `json:"zone"`
	Market       drover.Market       `json:"market"`
	HostKey      string              `json:"host_key,omitempty"`
	Price        drover.Money        `json:"price"`
	Idle         drover.IdleBehavior `json:"idle_behavior,omitempty"`
	Owner        string              `json:"owner,omitempty"`    // mark of its owner, from its tag
	Pool         string              `json:"pool,omitempty"`     // its pool, from its tag
	Template     string              `json:"template,omitempty"` // the pool template it was created from, from its tag
	Created      drover.Time         `json:"created,omitempty"`
	Addresses    drover.Addresses    `json:"addresses,omitzero"`
	Ending       bool                `json:"ending,omitempty"`    // listed as being destroyed
	Stopped      bool                `json:"stopped,omitempty"`   // listed as not running
	Kept         drover.Time         `json:"kept,omitempty"`      // when Drover stopped it, from its tag; 0: it did not
	Reclaimed    bool                `json:"reclaimed,omitempty"` // its cloud is interrupting, or interrupted, it
	Failed       *drover.Error       `json:"failed,omitempty"`    // its cloud accepted it and could not create it
	Ended        drover.Time         `json:"ended,omitempty"`     // when its bill ended, if it has and its cloud says so
}
