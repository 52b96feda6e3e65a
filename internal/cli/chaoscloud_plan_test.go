//go:build chaos || e2e

package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// faultKind is one kind of the chaos cloud's faults.
type faultKind string

const (
	lostReply      faultKind = "create replies lost" // half with an error, half without an answer; the instance exists
	twins          faultKind = "creates doubled"     // there are two instances of one name
	deaths         faultKind = "deaths"
	massDeaths     faultKind = "deaths together" // two thirds of all instances
	hangs          faultKind = "hangs"           // half of them never end
	newHostKeys    faultKind = "host keys changed"
	staleLists     faultKind = "lists stale" // an old copy
	shortLists     faultKind = "instances hidden"
	callErrors     faultKind = "lists or describes failed"
	failedDestroys faultKind = "destroys failed"
	brokenDestroys faultKind = "destroys failed, but done"
	idleDestroys   faultKind = "destroys accepted, not done"
	lateDestroys   faultKind = "destroyed and listed" // for some seconds more
)

// faultChances are the odds of each kind of fault: per call, per instance, or for shortLists per controller start.
var faultChances = []struct {
	kind   faultKind
	chance float64
}{
	{lostReply, 0.2}, {twins, 0.15}, {deaths, 0.3}, {massDeaths, 0.8}, {hangs, 0.2}, {newHostKeys, 0.15}, {staleLists, 0.5}, {shortLists, 0.7},
	{callErrors, 0.1}, {failedDestroys, 0.3}, {brokenDestroys, 0.3}, {idleDestroys, 0.3}, {lateDestroys, 0.5},
}

// How wrong the chaos cloud's lists may be. It promises listLag, so what a list shows for longer than that is true.
const (
	listLag  = 8 * time.Second
	oldest   = 7 * time.Second  // greatest age of a stale list
	longest  = 3 * time.Second  // longest time for which a living instance is hidden
	lingers  = 5 * time.Second  // longest time for which lists show an ended instance
	recalled = 12 * time.Second // the same, if the driver cannot describe
	settled  = 10 * time.Second // age at which every list has shown an instance, unless it is hidden
	grownOld = 40 * time.Second // age by which an instance's fate has happened
)

// cloudPlan is what one seed does to a fleet. The same seed gives the same kinds of faults and the same fate to the
// n-th instance; the times differ, since they depend on the controller's calls.
type cloudPlan struct {
	seed     uint64
	run      bool // drover run, otherwise drover serve
	describe bool // the driver program has the call
	older    bool // an older copy of the records is put back once
	chances  map[faultKind]float64

	// Set only by aimed tests.
	lag  time.Duration // of lists, instead of listLag
	fate instanceFate  // of each instance, instead of a drawn one
}

// planOf draws the plan of a seed. Each kind of fault occurs in three of four seeds.
func planOf(seed uint64) cloudPlan {
	p, d := cloudPlan{seed: seed, run: seed%3 == 0, describe: seed%2 == 0, older: seed%5 == 2, chances: map[faultKind]float64{}}, newDice(seed)
	for _, f := range faultChances {
		if d.float() < 0.75 {
			p.chances[f.kind] = math.Round(100*f.chance*(0.5+d.float())) / 100 // no two seeds are equal
		}
	}
	return p
}

func (p cloudPlan) String() string {
	return fmt.Sprintf("run %t, describe %t, older records %t, %v", p.run, p.describe, p.older, p.chances)
}

// instanceFate is what happens to one instance, and at which age; 0: never.
type instanceFate struct {
	lost, unanswered, twin  bool // how its create call goes
	dies, hangs, changesKey time.Duration
	hangsFor                time.Duration // 0: forever
	destroys                []faultKind   // what goes wrong with its destroys, in order
	listedFor               time.Duration // after its end
	hiddenFor               time.Duration // from lists, after its creation
}

// draw draws the fate of the n-th instance. None ends by itself before the lists must have shown it, so that a
// controller can know everything that it must pay for.
func (p cloudPlan) draw(n int) (f instanceFate) {
	if p.chances == nil {
		f = p.fate
		f.destroys = slices.Clone(f.destroys)
		return f
	}
	d := newDice(p.seed<<20 + uint64(n))
	has := func(kind faultKind) bool { return d.float() < p.chances[kind] }
	age := func(kind faultKind) time.Duration {
		if at := d.between(2*settled, grownOld); has(kind) {
			return at
		}
		return 0
	}
	f.lost, f.unanswered, f.twin = has(lostReply), d.float() < 0.5, has(twins)
	f.dies, f.hangs, f.changesKey = age(deaths), age(hangs), age(newHostKeys)
	if d.float() < 0.5 {
		f.hangsFor = d.between(time.Second, listLag)
	}
	for _, kind := range []faultKind{failedDestroys, idleDestroys, brokenDestroys} {
		if has(kind) {
			f.destroys = append(f.destroys, kind)
		}
	}
	if has(lateDestroys) {
		f.listedFor = d.between(time.Second, lingers)
	}
	if !p.describe {
		f.listedFor = d.between(oldest, recalled)
	}
	return f
}

// dice are a run's random numbers. Goroutines share them, so equal seeds give the same kinds of faults at different
// times.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand // guarded by mu
}

func newDice(seed uint64) *dice { return &dice{r: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64()
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int { return min(n-1, int(d.float()*float64(n))) }

// between returns a duration of at least shortest and less than longest.
func (d *dice) between(shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(d.float()*float64(longest-shortest))
}
