package market

import (
	"slices"

	"drover"
)

// Throttle limits how many creates of an offering may run at once after its cloud lacked capacity: each lack halves the
// limit, and each successful create raises it by one (additive increase, multiplicative decrease, as in Chiu and Jain,
// "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989), until it
// limits nothing.
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

// Throttle halves the limit of an offering. asking is how many create calls for it are in flight.
func (c *Catalogue) Throttle(o drover.Offering, asking int, now drover.Time) {
	at := slices.IndexFunc(c.Throttles, func(t Throttle) bool { return t.of(o) })
	if at < 0 {
		at = len(c.Throttles)
		c.Throttles = append(c.Throttles, Throttle{Zone: o.Zone, Type: o.Type.Name, Market: o.Market, Most: 1 + asking, Since: now})
	}
	c.Throttles[at].Most = max(1, c.Throttles[at].Most/2)
}

// Ease raises the limit of an offering by one. A throttle ends at most, its cloud's limit of concurrent create calls.
func (c *Catalogue) Ease(o drover.Offering, most int) {
	for i := range c.Throttles {
		if c.Throttles[i].of(o) {
			c.Throttles[i].Most++
		}
	}
	c.Throttles = slices.DeleteFunc(c.Throttles, func(t Throttle) bool { return t.Most >= most })
}

// AtOnce returns how many create calls for an offering may be in flight, if that is limited.
func (c *Catalogue) AtOnce(o drover.Offering) (most int, limited bool) {
	for _, t := range c.Throttles {
		if t.of(o) {
			return t.Most, true
		}
	}
	return 0, false
}
