package remote

import (
	"time"

	"drover"
	"drover/internal/wire"
)

// probe pings the runner at every interval, until the connection is closed. It closes the connection when two pings in
// a row get no answer.
func (c *Conn) probe() {
	for c.wait(c.times.ProbeInterval, nil) != overtaken {
		if !c.alive() {
			c.close(drover.Errorf(drover.KindUnreachable, "the instance is silent: two pings in a row got no answer within %v", c.times.Probe))
		}
	}
}

// alive pings until an answer comes or two pings have failed. A ping that timed out while this process was stopped or
// suspended does not count: the silence was ours. Nor does one that timed out while our Handler held up the stream.
func (c *Conn) alive() bool {
	for silent := 0; silent < 2; {
		select {
		case <-c.pongs: // a late answer to an earlier ping
		default:
		}
		if c.send(wire.Message{Ping: &wire.Ping{N: time.Now().UnixNano()}}) != nil {
			return true // closed, with its reason set
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

// ending is how a wait ended.
type ending int

const (
	elapsed     ending = iota
	elapsedLate        // much later than d
	woken
	overtaken // the connection was closed
)

// wait waits for d, until woken, or until the connection is closed.
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

// late reports whether a timer was so late that this process cannot have been running all the time. A busy host may
// delay a timer by some tenths of a second.
func late(asked, took time.Duration) bool { return took > asked+max(time.Second, asked/2) }
