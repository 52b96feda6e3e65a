package fleet

import "drover"

// Sighting is an instance as its cloud lists it.
type Sighting struct {
	ProviderID   string              `json:"provider_id"`
	Name         string              `json:"name"`
	ProviderType string              `json:"provider_type"`
	Type         string              `json:"type"` // by its tag
	Zone         string              `json:"zone"`
	Market       drover.Market       `json:"market"`
	HostKey      string              `json:"host_key,omitempty"`
	Price        drover.Money        `json:"price"`
	Idle         drover.IdleBehavior `json:"idle_behavior,omitempty"`
	Owner        string              `json:"owner,omitempty"`    // the mark of the user whose it is, by its tag
	Pool         string              `json:"pool,omitempty"`     // the pool that it belongs to, by its tag
	Template     string              `json:"template,omitempty"` // the pool's template that it was made from, by its tag
	Created      drover.Time         `json:"created,omitempty"`
	Addresses    drover.Addresses    `json:"addresses,omitzero"`
	Ending       bool                `json:"ending,omitempty"`    // listed, but it is being destroyed
	Stopped      bool                `json:"stopped,omitempty"`   // listed, but it does not run
	Kept         drover.Time         `json:"kept,omitempty"`      // when Drover stopped it, by its tag; 0: it has none
	Reclaimed    bool                `json:"reclaimed,omitempty"` // its cloud takes, or took, it back
	Failed       *drover.Error       `json:"failed,omitempty"`    // its cloud accepted it and could not make it
	Ended        drover.Time         `json:"ended,omitempty"`     // when its bill ended, if it has and its cloud says so
}
