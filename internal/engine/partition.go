package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// Partition is the controller's view of a cloud none of whose instances answers.
type Partition struct {
	Since drover.Time `json:"since,omitempty"` // since when the controller assumes a network partition; 0: it does not
	Over  bool        `json:"over,omitempty"`  // PartitionTimeout has passed: silence counts again until an instance answers
}

// minSilent is how many instances of a cloud must be silent before the controller assumes a partition. One or two dead
// instances are likelier than a network failure, and the assumption would keep their jobs waiting.
const minSilent = 3

// A controller that hears from none of a cloud's instances is probably cut off from them. While it assumes a partition,
// no instance that has work or belongs to a pool is given up for silence. It keeps dialling, and the assumption ends
// when any instance of that cloud answers, even one that has just booted, or after PartitionTimeout. A single answering
// instance proves that there is no partition, so all must be silent. Missing from lists is not silence: lists prove an
// instance gone.

// blames reports whether an instance may be given up for its silence.
func (e *Engine) blames(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	if c == nil {
		return true
	}
	if c.Partition == (Partition{}) {
		silent, undecided := e.silence(c.Name)
		if undecided {
			return false
		}
		if silent >= minSilent {
			c.Partition.Since = e.s.Now
			why := e.whyPartitioned(c)
			e.note(Note{Level: Warn, Text: why.Text, Cloud: c.Name, Reason: new(why.Reason())})
		}
	}
	if e.due(e.doubtEnds(c.Partition)) {
		c.Partition = Partition{Over: true}
		text := fmt.Sprintf("no instance of cloud %s has answered for %v, so the controller gives up on all of them", c.Name, e.life().PartitionTimeout)
		e.note(Note{Level: Warn, Text: text, Cloud: c.Name})
		e.touchSilent(c)
	}
	return c.Partition.Since == 0 || !e.needed(in)
}

// silence counts a cloud's instances that should be connected and are not: 0 if any is connected. It is undecided while
// the result depends on instances that lost their connection just now and have yet to be dialled.
func (e *Engine) silence(cloud string) (silent int, undecided bool) {
	open := 0
	for _, in := range e.fleet.All() {
		switch {
		case in.Cloud != cloud:
		case in.Connected:
			return 0, false
		case !in.ShouldBeConnected() || e.unlisted(in):
		case !in.Tried && e.s.Now < in.Silent.Add(e.life().ProbeTimeout):
			open++
		default:
			silent++
		}
	}
	return silent, open > 0 && silent+open >= minSilent
}

// needed reports whether an instance is needed: by its pool, which it may still be serving, or by jobs, for an attempt
// that is not being stopped or will be restarted elsewhere.
func (e *Engine) needed(in *fleet.Member) bool {
	if in.Pooled() && in.Ready != 0 && in.TakesWork() && !e.s.Draining && !e.s.Closing {
		return true
	}
	return slices.ContainsFunc(in.Load, func(a *Attempt) bool { return a.Stop == nil || requeues(*a.Stop) })
}

// partitioned returns since when a partition explains an instance's silence; 0 if its silence counts.
func (e *Engine) partitioned(in *fleet.Member) drover.Time {
	if c := e.cloud(in.Cloud); c != nil && in.ShouldBeConnected() && e.needed(in) {
		return c.Partition.Since
	}
	return 0
}

// doubtEnds returns when the controller stops assuming a partition; 0 if only an answer ends it.
func (e *Engine) doubtEnds(p Partition) drover.Time {
	if p.Since == 0 || e.life().PartitionTimeout == 0 {
		return 0
	}
	return p.Since.Add(e.life().PartitionTimeout)
}

// endPartition ends the assumed partition when an instance answers. The cloud's other instances get another
// ProbeTimeout.
func (e *Engine) endPartition(in *fleet.Member) {
	c := e.cloud(in.Cloud)
	if c == nil || c.Partition == (Partition{}) {
		return
	}
	was := c.Partition
	c.Partition = Partition{}
	if was.Since == 0 {
		return
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s is answering: cloud %s is reachable again", in.Name, c.Name), Instance: in.Name, Cloud: c.Name})
	for _, o := range e.fleet.All() {
		if o.Cloud == c.Name && o.ShouldBeConnected() && !o.Connected {
			o.Tried = false
			e.beginSilence(o)
		}
	}
	e.touchSilent(c)
}

func (e *Engine) touchSilent(c *Cloud) {
	for _, o := range e.fleet.All() {
		if o.Cloud == c.Name && o.ShouldBeConnected() && !o.Connected {
			e.touch(o)
		}
	}
}

// pausePartitions excludes a suspension of the controller from the duration of partitions.
func (e *Engine) pausePartitions(gap time.Duration) {
	for _, c := range e.clouds {
		if p := &c.Partition; p.Since != 0 {
			p.Since = min(p.Since.Add(gap), e.s.Now)
		}
		if since := c.Checks.Since; since != 0 {
			e.setChecks(c, Partition{Since: min(since.Add(gap), e.s.Now)})
		}
	}
}

// whyPartitioned explains why no instance of a cloud is given up for silence.
func (e *Engine) whyPartitioned(c *Cloud) Verdict {
	text := fmt.Sprintf("no instance of cloud %s is answering: the controller assumes a network failure, keeps the instances that are needed, and keeps trying to connect", c.Name)
	at := slices.IndexFunc(e.fleet.All(), func(in *fleet.Member) bool {
		return in.Cloud == c.Name && in.ShouldBeConnected() && in.Reason != nil && in.Reason.Cause == verdict.Unreachable
	})
	if at >= 0 {
		in := e.fleet.All()[at]
		text += fmt.Sprintf("; connecting to %s failed: %s", in.Name, in.Reason.Text)
	}
	return Verdict{Cause: drover.ReasonPartition, Text: text, Since: c.Partition.Since, Until: later(e.doubtEnds(c.Partition), e.s.Now)}
}
