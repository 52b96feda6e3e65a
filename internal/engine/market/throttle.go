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
	OfferingKey
	Most  int         `json:"most"`
	Since drover.Time `json:"since"`
}

// throttle returns the position of an offering's throttle; -1 if it has none.
func (c *Catalogue) throttle(o drover.Offering) int {
	return slices.IndexFunc(c.Throttles, func(t Throttle) bool { return t.OfferingKey == KeyOf(o) })
}

// Throttle halves the limit of an offering. asking is how many create calls for it are in flight.
func (c *Catalogue) Throttle(o drover.Offering, asking int, now drover.Time) {
	at := c.throttle(o)
	if at < 0 {
		at = len(c.Throttles)
		c.Throttles = append(c.Throttles, Throttle{KeyOf(o), 1 + asking, now})
	}
	c.Throttles[at].Most = max(1, c.Throttles[at].Most/2)
}

// Ease raises the limit of an offering by one. A throttle ends at most, its cloud's limit of concurrent create calls.
func (c *Catalogue) Ease(o drover.Offering, most int) {
	if at := c.throttle(o); at >= 0 {
		c.Throttles[at].Most++
	}
	c.Throttles = slices.DeleteFunc(c.Throttles, func(t Throttle) bool { return t.Most >= most })
}

// AtOnce returns how many create calls for an offering may be in flight, if that is limited.
func (c *Catalogue) AtOnce(o drover.Offering) (most int, limited bool) {
	if at := c.throttle(o); at >= 0 {
		return c.Throttles[at].Most, true
	}
	return 0, false
}
