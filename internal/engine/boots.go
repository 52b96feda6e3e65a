package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drover"
)

// Boot time is weighed against price, using observed boots: for a job assumed to last an hour, an instance that boots
// for ten minutes must cost a seventh less than one that is ready immediately. All types of a cloud are assumed to boot
// like the median one, so that noise moves no work between types, except types observed to be far slower or faster,
// such as bare metal. A cloud without observations counts as quick as the quickest, and is thereby tried.

// bootTimes is how long instances are paid for besides their work: the usual time, and exceptions. It covers the boot
// and, where a cloud bills by the period, half a period, since ends fall anywhere in it.
type bootTimes struct {
	usual time.Duration
	other []drover.Boot // by cloud, entries for all of a cloud first

	quickest time.Duration // the quickest cloud's boot alone; 0: none observed
}

const (
	bootSeen    = 2                // boots of a type before it may be an exception
	bootApart   = 2                // by this factor, up or down, an exception differs from its cloud's median,
	bootMatters = time.Minute      // and by at least this much
	bootGrain   = 15 * time.Second // times are rounded to this
)

// computeBootTimes derives the boot times from the statistics.
func (e *Engine) computeBootTimes() (b bootTimes) {
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

// bootsIn returns a cloud's median boot time, 0 if unknown, and the types that differ from it.
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

// bootTimes returns the cached boot times.
func (e *Engine) bootTimes() bootTimes {
	if e.bootCache == nil {
		b := e.computeBootTimes()
		e.bootCache = &b
	}
	return *e.bootCache
}

// of returns the time for an offering.
func (b bootTimes) of(o *drover.Offering) time.Duration {
	return drover.BootOf(b.usual, b.other, o.Cloud, o.Type.Name)
}

// noteBoot recomputes the boot times after another boot was observed.
func (e *Engine) noteBoot() {
	if was := e.bootCache; was != nil {
		e.bootCache = nil
		if b := e.bootTimes(); b.usual != was.usual || !slices.Equal(b.other, was.other) {
			e.bootRevision++
		}
	}
}
