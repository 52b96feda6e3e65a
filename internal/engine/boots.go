package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drover"
)

// What boots cost is weighed against prices, by how long instances have been seen to boot: one that boots for ten minutes must cost a seventh less
// than one that is there at once, for a job that is taken to last an hour. Types of one cloud are taken to boot alike, as the middle one of
// them does, so that chance moves no work from one type to another; but for a type that was seen to take far longer, or shorter, as bare metal does.
// A cloud of which nothing has been seen is taken for as quick as the quickest, and so tried.

// bootTimes is how long instances are paid beside their work: as the quickest cloud's are, but for some. That is while they boot and, where a cloud bills
// by the period, half of one: ends fall anywhere in it.
type bootTimes struct {
	usual time.Duration
	other []drover.Boot // by cloud, those of a whole cloud first

	quickest time.Duration // the quickest cloud's boot alone; 0: none was seen
}

const (
	bootSeen    = 2                // boots of a type that say something of it
	bootApart   = 2                // so many times as long as its cloud's other types, or as short,
	bootMatters = time.Minute      // and by so much, it is told apart
	bootGrain   = 15 * time.Second // times are rounded to
)

// seenBoots works that out of what has been seen.
func (e *Engine) seenBoots() (b bootTimes) {
	var clouds []drover.Boot
	quickest := time.Duration(0)
	for _, c := range e.enabled() {
		usual, types := bootsIn(c.Name, e.s.Stats.Boots)
		if usual > 0 && (quickest == 0 || usual < quickest) {
			quickest = usual
		}
		clouds, b.other = append(clouds, drover.Boot{Cloud: c.Name, Time: usual}), append(b.other, types...)
	}
	b.quickest = quickest
	for i := range clouds {
		clouds[i].Time = cmp.Or(clouds[i].Time, quickest)
	}
	for _, all := range [][]drover.Boot{clouds, b.other} {
		for i := range all {
			all[i].Time += e.limits(all[i].Cloud).Billing.Period / 2
		}
	}
	if len(clouds) > 0 {
		b.usual = slices.MinFunc(clouds, func(x, y drover.Boot) int { return cmp.Compare(x.Time, y.Time) }).Time
	}
	slower := slices.DeleteFunc(clouds, func(c drover.Boot) bool { return c.Time == b.usual })
	b.other = slices.Concat(slower, b.other)
	return b
}

// bootsIn is how long most of a cloud's types boot, 0 if that is not known, and the types that do not.
func bootsIn(cloud string, seen []Stat) (usual time.Duration, apart []drover.Boot) {
	prefix, means := BootKey(cloud, ""), []time.Duration{}
	for _, h := range seen {
		if strings.HasPrefix(h.Key, prefix) {
			means = append(means, h.Mean)
		}
	}
	if len(means) == 0 {
		return 0, nil
	}
	slices.Sort(means)
	usual = max(bootGrain, means[len(means)/2].Round(bootGrain))
	for _, h := range seen {
		name, ours := strings.CutPrefix(h.Key, prefix)
		far := max(h.Mean, usual) > bootApart*min(h.Mean, usual) && (h.Mean-usual).Abs() >= bootMatters
		if ours && far && h.Count >= bootSeen {
			apart = append(apart, drover.Boot{Cloud: cloud, Type: name, Time: h.Mean.Round(bootGrain)})
		}
	}
	return usual, apart
}

// bootTimes is how long instances are paid beside their work.
func (e *Engine) bootTimes() bootTimes {
	if e.seen == nil {
		b := e.seenBoots()
		e.seen = &b
	}
	return *e.seen
}

// of is that of an instance of an offering.
func (b bootTimes) of(o *drover.Offering) time.Duration {
	return drover.BootOf(b.usual, b.other, o.Cloud, o.Type.Name)
}

// reboot notes that another boot has been seen.
func (e *Engine) reboot() {
	if was := e.seen; was != nil {
		e.seen = nil
		if b := e.bootTimes(); b.usual != was.usual || !slices.Equal(b.other, was.other) {
			e.reboots++
		}
	}
}
