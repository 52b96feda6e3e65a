package engine

import (
	"fmt"

	"drover"
	"drover/internal/engine/fleet"
)

// whyNoRoom says that no instance may be added, since a limit is reached.
func (e *Engine) whyNoRoom(of func(cloud string) use) Verdict {
	if most := e.s.Settings.MaxInstances; most > 0 && e.room() == 0 {
		return whyFull(fleetFull(most), of(""))
	}
	if clouds := e.enabled(); len(clouds) == 1 {
		name := clouds[0].Name
		return whyFull(cloudFull(name, e.limits(name).MaxInstances), of(name))
	}
	return whyFull("every cloud has as many instances as its max_instances allows", of(""))
}

func fleetFull(most int) string {
	return fmt.Sprintf("the fleet has the %s that its limit allows", countOf(most, "instance"))
}

func cloudFull(name string, most int) string {
	return fmt.Sprintf("cloud %s has the %s that its max_instances allows", name, countOf(most, "instance"))
}

// whyFull says that a limit on instances is reached, since the last of them was asked for.
func whyFull(full string, by use) Verdict {
	return Verdict{Cause: drover.ReasonLimit, Text: fmt.Sprintf("%s, and %s, or raise the limit", full, useText(by.takes, by.others)), Since: by.last}
}

// use is how many instances take work, and how many do not; and when the last of them was asked for.
type use struct {
	takes, others int
	last          drover.Time
}

// useNow is the use of a cloud's instances, or of all, for a decision: mostly without a look at each.
func (e *Engine) useNow(cloud string) use {
	if n := e.fleet.Len(); n > 0 && (cloud == "" || e.fleet.In(cloud) == n) {
		takes := e.fleet.Index().Takers
		return use{takes, n - takes, e.fleet.All()[n-1].Asked}
	}
	return e.useOfAll(cloud)
}

// useOfAll is the same, and changes nothing.
func (e *Engine) useOfAll(cloud string) (u use) {
	for _, in := range e.fleet.All() {
		switch {
		case cloud != "" && in.Cloud != cloud:
			continue
		case in.Serving():
			u.takes++
		default:
			u.others++
		}
		u.last = max(u.last, in.Asked)
	}
	return u
}

// lastAsked is when the last of some instances was asked for; 0 if there is none.
func (e *Engine) lastAsked(some func(*fleet.Member) bool) (last drover.Time) {
	for _, in := range e.fleet.All() {
		if some(in) {
			last = max(last, in.Asked)
		}
	}
	return last
}

// useText says what keeps the instances that there are, of which so many take work and others do not, from the work that waits, and what for it waits.
func useText(takes, others int) string {
	switch {
	case takes+others == 1 && others == 0:
		return "it is in use or kept; wait until it has room or is gone"
	case takes+others == 1:
		return "it takes no work, because it is held, draining or leaving; wait until it is released or gone"
	case others == 0:
		return "they are in use or kept; wait until one of them has room or is gone"
	case takes == 0:
		return "they take no work, because each is held, draining or leaving; wait until one of them is released or gone"
	}
	return fmt.Sprintf("they are in use or kept, except for %d that are held, draining or leaving; wait until one of them has room or is gone", others)
}

// countOf is a number of things, in words that fit it.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
