package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/fleet"
)

// What a good list no longer has is given up by lists alone: its silence says nothing more, neither of it nor of the controller.
//
// An instance that vanishes while it boots was killed, which says nothing of its offering, so another is rented at once. But if the next of
// that offering vanishes as well, renting on would only burn money, and the offering is left alone as if it did not boot.

// Vanishing is an offering of which an instance vanished while it booted, and of which none was ready since.
type Vanishing struct {
	Zone   string        `json:"zone"`
	Type   string        `json:"type"`
	Market drover.Market `json:"market"`
	At     drover.Time   `json:"at"` // when the first was held to be gone
}

func (v Vanishing) of(in *fleet.Member) bool {
	return v.Zone == in.Zone && v.Type == in.Type.Name && v.Market == in.Market
}

// lacked reports whether the last good list, begun since the instance was known to be there, has it not.
func (e *Engine) lacked(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return c != nil && !in.Listed && c.Good != 0 && c.Good >= in.Known
}

// unlisted is lacked of an instance that a list has had.
func (e *Engine) unlisted(in *fleet.Member) bool { return in.Seen && e.lacked(in) }

// vanishedBooting notes that an instance vanished before it was ready. Those that were asked for before the first such was known to be gone
// may have met the same misfortune; one that was asked for after it is one too many.
func (e *Engine) vanishedBooting(in *fleet.Member, why Verdict) {
	c := e.cloud(in.Cloud)
	if c == nil {
		return
	}
	at := slices.IndexFunc(c.Vanished, func(v Vanishing) bool { return v.of(in) })
	switch {
	case at < 0:
		c.Vanished = append(c.Vanished, Vanishing{in.Zone, in.Type.Name, in.Market, e.s.Now})
	case in.Asked >= c.Vanished[at].At:
		e.blockUnusable(in, why)
	}
}

// boots forgets what vanished of the instance's offering, since one of it is ready.
func (e *Engine) boots(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c != nil {
		c.Vanished = slices.DeleteFunc(c.Vanished, func(v Vanishing) bool { return v.of(in) })
	}
}
