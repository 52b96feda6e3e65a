package forecast

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

// BootTimes is how long instances are paid for besides their work: the usual time, and exceptions. It covers the boot
// and, where a cloud bills by the period, half a period, since ends fall anywhere in it.
type BootTimes struct {
	Usual time.Duration
	Other []drover.Boot // by cloud, entries for all of a cloud first

	Wait time.Duration // from a request until the quickest cloud's instance is ready; 0: no boot observed
}

const (
	bootSeen    = 2                // boots of a type before it may be an exception
	bootApart   = 2                // by this factor, up or down, an exception differs from its cloud's median,
	bootMatters = time.Minute      // and by at least this much
	bootGrain   = 15 * time.Second // times are rounded to this, and never shorter
)

// computeBootTimes derives the boot times from the statistics.
func (f *Forecast) computeBootTimes() (b BootTimes) {
	var clouds []drover.Boot
	quickest := time.Duration(0)
	for _, c := range f.clouds {
		median, types := bootsIn(c.Name, f.boots)
		for i := range types {
			types[i].Time += c.Billing.Period / 2
		}
		usual := median.Round(bootGrain)
		if median > 0 {
			call, _ := stat(f.calls, c.Name)
			quickest, b.Wait = least(quickest, usual), least(b.Wait, call.Mean+median)
		}
		clouds, b.Other = append(clouds, drover.Boot{Cloud: c.Name, Time: usual}), append(b.Other, types...)
	}
	for i := range clouds {
		clouds[i].Time = cmp.Or(clouds[i].Time, quickest) + f.clouds[i].Billing.Period/2
	}
	if len(clouds) > 0 {
		b.Usual = slices.MinFunc(clouds, func(x, y drover.Boot) int { return cmp.Compare(x.Time, y.Time) }).Time
	}
	slower := slices.DeleteFunc(clouds, func(c drover.Boot) bool { return c.Time == b.Usual })
	b.Other = slices.Concat(slower, b.Other)
	return b
}

// least returns the shorter of two durations, of which 0 is unknown.
func least(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// bootsIn returns a cloud's median boot time, 0 if unknown and at least bootGrain otherwise, and the types that differ
// from it.
func bootsIn(cloud string, seen []Stat) (median time.Duration, apart []drover.Boot) {
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
	median = max(bootGrain, means[len(means)/2])
	usual := median.Round(bootGrain)
	for _, h := range seen {
		name, ours := strings.CutPrefix(h.Key, prefix)
		far := max(h.Mean, usual) > bootApart*min(h.Mean, usual) && (h.Mean-usual).Abs() >= bootMatters
		if ours && far && h.Count >= bootSeen {
			apart = append(apart, drover.Boot{Cloud: cloud, Type: name, Time: h.Mean.Round(bootGrain)})
		}
	}
	return median, apart
}

// Of returns the time for an offering.
func (b *BootTimes) Of(o *drover.Offering) time.Duration {
	return drover.BootOf(b.Usual, b.Other, o.Cloud, o.Type.Name)
}

// BootTimes returns the boot times. The caller must not change them.
func (f *Forecast) BootTimes() *BootTimes {
	if f.bootTimes == nil {
		f.bootTimes = new(f.computeBootTimes())
	}
	return f.bootTimes
}

// BootRevision counts changes of the boot times.
func (f *Forecast) BootRevision() int { return f.bootRevision }

// Boot returns how long instances of a type boot; false if none was observed.
func (f *Forecast) Boot(cloud, instanceType string) (time.Duration, bool) {
	s, known := stat(f.boots, BootKey(cloud, instanceType))
	return s.Mean, known
}

// Accepted adds the time from the request for an instance until its cloud accepted the first create call.
func (f *Forecast) Accepted(cloud string, took time.Duration, now drover.Time) {
	f.calls = See(f.calls, cloud, took, now)
	f.refreshBoots()
}

// Booted adds the time from an instance's creation until it was ready.
func (f *Forecast) Booted(cloud, instanceType string, took time.Duration, now drover.Time) {
	f.boots = See(f.boots, BootKey(cloud, instanceType), took, now)
	f.refreshBoots()
}

func (f *Forecast) refreshBoots() {
	if was := f.bootTimes; was != nil {
		f.bootTimes = nil
		if b := f.BootTimes(); b.Usual != was.Usual || !slices.Equal(b.Other, was.Other) {
			f.bootRevision++
		}
	}
}
