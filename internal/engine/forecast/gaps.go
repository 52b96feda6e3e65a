package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
)

// Gap is how soon work of one shape has returned recently: the time from when an instance had none of it left until the
// next was submitted, as if each instance had been kept until then. So what is learned does not depend on what is kept.
type Gap struct {
	Key   string          `json:"key"`
	Shape drover.Shape    `json:"shape"`
	User  string          `json:"user,omitempty"`  // work of this user alone; empty: of all users
	Took  []time.Duration `json:"took,omitempty"`  // ended gaps, latest last
	Since []drover.Time   `json:"since,omitempty"` // beginnings of current gaps, latest last
	Last  drover.Time     `json:"last"`            // last update
}

// gapKey identifies a Gap.
type gapKey struct {
	shape drover.Shape
	user  string
}

const (
	gapsMost  = 16 // remembered per shape
	gapsLeast = 3  // fewer say nothing
)

// WorkEnded records that an instance has no work of a shape left, and that none waits. user is whose work the instance
// takes; empty: everybody's.
func (f *Forecast) WorkEnded(s drover.Shape, user string, now drover.Time) {
	for _, g := range f.gapsFor(s, user, now) {
		g.Since = latest(append(slices.Clip(g.Since), now))
	}
}

// WorkCame records the submission of n jobs of a shape: each ends a current gap, the latest first. Gaps longer than any
// instance is kept remain until they are displaced.
func (f *Forecast) WorkCame(s drover.Shape, user string, n int, now drover.Time) {
	for _, g := range f.gapsFor(s, user, now) {
		n := min(n, len(g.Since))
		ended := g.Since[len(g.Since)-n:]
		g.Since = slices.Clone(g.Since[:len(g.Since)-n])
		g.Took = slices.Clip(g.Took)
		for _, at := range slices.Backward(ended) {
			g.Took = append(g.Took, now.Sub(at))
		}
		g.Took = latest(g.Took)
	}
}

// latest returns the last gapsMost elements.
func latest[T any](all []T) []T { return slices.Clone(all[max(0, len(all)-gapsMost):]) }

// gapsFor returns the gaps of everybody's work of a shape and, if instances belong to users, of the user's.
func (f *Forecast) gapsFor(s drover.Shape, user string, now drover.Time) []*Gap {
	all := []*Gap{f.gap(gapKey{shape: s}, now)}
	if user != "" {
		all = append(all, f.gap(gapKey{s, user}, now))
	}
	return all
}

// gap returns the gap of a key, for changing. If there are too many, the one not updated for longest is dropped for a
// new one.
func (f *Forecast) gap(key gapKey, now drover.Time) *Gap {
	g := f.gapsOf[key]
	if g == nil {
		if len(f.gaps) >= gapKeysMost {
			oldest := slices.MinFunc(f.gaps, func(a, b *Gap) int { return cmp.Or(cmp.Compare(a.Last, b.Last), cmp.Compare(a.Key, b.Key)) })
			f.gaps = slices.DeleteFunc(f.gaps, func(g *Gap) bool { return g == oldest })
			delete(f.gapsOf, gapKey{oldest.Shape, oldest.User})
		}
		g = &Gap{Key: key.String(), Shape: key.shape, User: key.user}
		at, _ := slices.BinarySearchFunc(f.gaps, g, func(a, b *Gap) int { return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Key, b.Key)) })
		f.gaps = slices.Insert(f.gaps, at, g)
		f.gapsOf[key] = g
	}
	g.Last = now
	return g
}

// of returns the gaps of a user's work.
func (f *Forecast) of(user string) []*Gap {
	from, _ := slices.BinarySearchFunc(f.gaps, user, func(g *Gap, user string) int { return cmp.Compare(g.User, user) })
	all := f.gaps[from:]
	if end := slices.IndexFunc(all, func(g *Gap) bool { return g.User != user }); end >= 0 {
		all = all[:end]
	}
	return all
}

// String returns a unique text, by which gaps are sorted.
func (k gapKey) String() string {
	s := k.shape
	text := fmt.Sprintf("%d %d %d %d %s %q %q %q %d %s", s.Need.CPU, s.Need.Memory, s.Need.Disk, s.Need.GPUs, s.Need.Arch, s.Placement.Cloud, s.Placement.Zone, s.Placement.Type, s.Placement.MaxPrice, s.Spot)
	if k.user != "" {
		text += fmt.Sprintf(" %q", k.user)
	}
	return text
}

// lasting returns how many current gaps have lasted this long.
func (g *Gap) lasting(now drover.Time, long time.Duration) (n int) {
	for _, at := range g.Since {
		if now.Sub(at) >= long {
			n++
		}
	}
	return n
}

// best returns for how long keeping each instance in these gaps would have cost least, where another costs this long a
// boot, and how many gaps had ended by then. 0: not at all, or it would have saved little: what was best for few gaps
// is rarely as good for the next ones.
func (g *Gap) best(now drover.Time, boot time.Duration) (hold time.Duration, over int) {
	took := slices.Sorted(slices.Values(g.Took))
	all := len(took) + g.lasting(now, boot)
	least, kept := time.Duration(all)*boot*3/4, time.Duration(0)
	for i, t := range took {
		if t > boot {
			break
		}
		kept += t
		if cost := kept + time.Duration(all-i-1)*(t+boot); cost < least {
			least, hold, over = cost, t, i+1
		}
	}
	return hold, over
}

// Hold is how long an idle instance is worth keeping.
type Hold struct {
	For    time.Duration // 0: not at all
	Seen   int           // how many gaps say so; 0: too few are known
	Within int           // how many of them ended within this time
}

// Hold returns the longest time that is worth keeping an instance for any shape of work that it takes: a user's, or
// with an empty user everybody's. A boot takes boot; saves returns how much of one, at the instance's price, work of a
// shape saves that finds the instance idle, 0 if the instance cannot take it.
func (f *Forecast) Hold(user string, boot time.Duration, now drover.Time, saves func(drover.Shape) time.Duration) (h Hold) {
	for _, g := range f.of(user) {
		seen := len(g.Took) + g.lasting(now, boot)
		if seen < gapsLeast {
			continue
		}
		if saved := saves(g.Shape); saved > 0 {
			if hold, within := g.best(now, saved); h.Seen == 0 || hold > h.For {
				h = Hold{hold, seen, within}
			}
		}
	}
	if h.Seen > 0 || user == "" {
		return h
	}
	if all := f.Hold("", boot, now, saves); all.For == 0 {
		return all // a single user's work returns even later
	}
	return Hold{}
}

// EndedBetween reports whether an instance ran out of work between two times that another takes too, and such work has
// not returned since.
func (f *Forecast) EndedBetween(user string, after, before drover.Time, takes func(drover.Shape) bool) bool {
	return slices.ContainsFunc(f.of(user), func(g *Gap) bool {
		return slices.ContainsFunc(g.Since, func(at drover.Time) bool { return after < at && at < before }) && takes(g.Shape)
	})
}
