package remote

import (
	"time"

	"drover"
	"drover/internal/wire"
)

// probe asks the runner for a sign of life at every interval, until the connection is closed. It closes it when an
// answer fails to come and the one to a last, direct question as well.
func (c *Conn) probe() {
	for c.wait(c.times.ProbeInterval, nil) != overtaken {
		if !c.alive() {
			c.close(drover.Errorf(drover.KindUnreachable, "the instance is silent: two pings in a row had no answer within %v", c.times.Probe))
		}
	}
}

// alive asks up to twice. A question whose time ran out while this process was itself stopped or suspended does not
// count: the silence was ours. So it was while our handler held up the stream.
func (c *Conn) alive() bool {
	for silent := 0; silent < 2; {
		c.discardPong()
		if c.send(wire.Message{Ping: &wire.Ping{N: time.Now().UnixNano()}}) != nil {
			return true // closed, and the reason known
		}
		switch c.wait(c.times.Probe, c.pongs) {
		case elapsed:
			if !c.handling.Load() {
				silent++
			}
		case elapsedLate:
		default:
			return true
		}
	}
	return false
}

// discardPong drops an answer that came too late for an earlier question.
func (c *Conn) discardPong() {
	select {
	case <-c.pongs:
	default:
	}
}

// How a wait ended.
type ending int

const (
	elapsed     ending = iota
	elapsedLate        // much later than asked
	woken
	overtaken // the connection was closed meanwhile
)

// wait waits for a time, or until woken.
func (c *Conn) wait(d time.Duration, wake <-chan struct{}) ending {
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.closed:
		return overtaken
	case <-wake:
		return woken
	case <-timer.C:
	}
	if late(d, time.Since(began)) {
		return elapsedLate
	}
	return elapsed
}

// late reports whether a timer took so much longer than asked that this process cannot have been running all the time.
// A busy host may delay a timer by some tenths of a second.
func late(asked, took time.Duration) bool { return took > asked+max(time.Second, asked/2) }
