package engine

import (
	"fmt"
	"slices"

	"drover"
)

// fewest is how many instances of a cloud have to fall silent together for the controller to doubt itself.
const fewest = 3

// A controller that hears nothing any more of most of a cloud's instances, at about the same time, is rather deaf itself than right about
// them all: while it takes itself for that, none of them is held to be silent. What the cloud's own list no longer has is gone all the
// same, and until lists prove it, what the last one no longer has is no sign of deafness, unless it was heard after that list. It hears again as soon as one instance of that cloud
// answers, or when too few are silent for that doubt; how long the others are silent is then counted anew, and not blamed on the controller
// again while one answers. Nothing is lost with an instance on which nobody wants anything any more, so no doubt keeps that.

// hears reports whether an instance that has been silent for too long is really silent. If it is the controller that is deaf, that is said,
// once.
func (e *Engine) hears(in *instance) bool {
	c := e.cloud(in.Cloud)
	if c == nil || !e.missed(in) {
		return true
	}
	if c.Deaf != 0 {
		return false
	}
	heard, together := e.company(in)
	if together < fewest || together <= heard || in.Alone && heard > 0 {
		return true
	}
	c.Deaf = e.s.Now
	why := e.reason(drover.ReasonDeaf, "%d of the %d instances in cloud %s fell silent together, so the controller takes itself for the deaf one", together, heard+together, c.Name)
	e.note(Note{Level: Warn, Text: why.Text, Cloud: c.Name, Reason: &why})
	return false
}

// company counts the instances of an instance's cloud that are heard, and those that fell silent together with it, itself included.
func (e *Engine) company(in *instance) (heard, together int) {
	near := e.life().ProbeTimeout
	return e.hearing(in.Cloud, func(o *instance) bool {
		return o.Silent >= in.Silent.Add(-near) && o.Silent <= in.Silent.Add(near)
	})
}

// hearing counts those of a cloud's instances that ought to be heard: the ones that are, and of the silent ones those that count.
func (e *Engine) hearing(cloud string, counts func(silent *instance) bool) (heard, silent int) {
	for _, in := range e.instances {
		switch {
		case in.Cloud != cloud || !in.wasHeard():
		case in.Connected:
			heard++
		case !e.unlisted(in) && counts(in):
			silent++
		}
	}
	return heard, silent
}

// wasHeard reports whether an instance ought to be heard: it was, by this controller or one before. A boot has a deadline of its own.
func (in *instance) wasHeard() bool {
	known := in.State.Ready() || in.State == drover.InstanceUnknown
	return known && !in.Broken && (in.Ready != 0 || !in.Begun)
}

// deaf is since when the controller takes itself for deaf to an instance's cloud, 0 while it does not.
func (e *Engine) deaf(in *instance) drover.Time {
	if c := e.cloud(in.Cloud); c != nil && in.wasHeard() && e.missed(in) {
		return c.Deaf
	}
	return 0
}

// missed reports whether somebody would miss an instance: for an attempt that was not told to end for good or, if it has none, for work to come.
func (e *Engine) missed(in *instance) bool {
	if len(in.load) == 0 {
		return !e.s.Closing
	}
	return slices.ContainsFunc(in.load, func(a *Attempt) bool { return a.Stop == nil || putsOff(*a.Stop) })
}

// hear ends the deafness to a cloud of which an instance has answered.
func (e *Engine) hear(in *instance) {
	in.Alone = false
	c := e.cloud(in.Cloud)
	if c == nil || c.Deaf == 0 {
		return
	}
	e.endDeafness(c, fmt.Sprintf("hears cloud %s again", c.Name))
}

// reconsider ends the deafness to a cloud of which not enough instances are silent any more to be held for it.
func (e *Engine) reconsider(c *Cloud) {
	if c == nil || c.Deaf == 0 {
		return
	}
	heard, silent := e.hearing(c.Name, func(*instance) bool { return true })
	if silent < fewest || silent <= heard {
		e.endDeafness(c, fmt.Sprintf("no longer takes itself for deaf to cloud %s: too few of it are silent, %d", c.Name, silent))
	}
}

func (e *Engine) endDeafness(c *Cloud, text string) {
	e.note(Note{Level: Warn, Text: text, Cloud: c.Name})
	c.Deaf = 0
	for _, o := range e.instances {
		if o.Cloud == c.Name && o.wasHeard() && !o.Connected {
			o.Silent, o.Tried, o.Alone = e.s.Now, false, true
			e.touch(o)
		}
	}
}
