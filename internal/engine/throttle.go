package engine

import (
	"slices"

	"drover"
)

// Throttle is how many creates of an offering may be under way at once, since its cloud had not enough for more: halved with each
// lack of capacity, and one more with each create that succeeds (additive increase, multiplicative decrease, as in Chiu and Jain, "Analysis
// of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989), until it is no throttle any more.
type Throttle struct {
	Zone   string        `json:"zone"`
	Type   string        `json:"type"`
	Market drover.Market `json:"market"`
	Most   int           `json:"most"`
	Since  drover.Time   `json:"since"`
}

func (t Throttle) of(o drover.Offering) bool {
	return t.Zone == o.Zone && t.Type == o.Type.Name && t.Market == o.Market
}

// throttle halves how many of an offering are asked for at once.
func (e *Engine) throttle(o drover.Offering) {
	c := e.cloud(o.Cloud)
	if c == nil {
		return
	}
	at := slices.IndexFunc(c.Throttles, func(t Throttle) bool { return t.of(o) })
	if at < 0 {
		at = len(c.Throttles)
		c.Throttles = append(c.Throttles, Throttle{Zone: o.Zone, Type: o.Type.Name, Market: o.Market, Most: 1 + e.asking(o), Since: e.s.Now})
	}
	c.Throttles[at].Most = max(1, c.Throttles[at].Most/2)
}

// ease lets one more of what was created be asked for at once, unless it was asked for before the last lack of it.
func (e *Engine) ease(in *instance) {
	c, o := e.cloud(in.Cloud), e.offeringOf(in)
	if c == nil || e.blockFrom(o, in.ID) != nil {
		return
	}
	for i := range c.Throttles {
		if c.Throttles[i].of(o) {
			c.Throttles[i].Most++
		}
	}
	c.Throttles = slices.DeleteFunc(c.Throttles, func(t Throttle) bool { return t.Most >= e.limits(c.Name).MaxCreating })
}

// throttled reports whether an instance has to wait because enough of what it is to be are asked for, and how many that may be.
func (e *Engine) throttled(in *instance) (most int, so bool) {
	c := e.cloud(in.Cloud)
	if c == nil || len(in.Candidates) == 0 {
		return 0, false
	}
	for _, t := range c.Throttles {
		if t.of(in.Candidates[0]) {
			return t.Most, e.asking(in.Candidates[0]) >= t.Most
		}
	}
	return 0, false
}

func (e *Engine) waitsForThrottle(in *instance) bool {
	_, so := e.throttled(in)
	return so
}

// asking is how many create calls are under way that ask for an offering first.
func (e *Engine) asking(o drover.Offering) (n int) {
	like := Throttle{Zone: o.Zone, Type: o.Type.Name, Market: o.Market}
	for _, in := range e.refreshIndex().creating {
		if in.State == drover.InstanceCreating && in.Call != 0 && in.Cloud == o.Cloud && len(in.Candidates) > 0 && like.of(in.Candidates[0]) {
			n++
		}
	}
	return n
}
