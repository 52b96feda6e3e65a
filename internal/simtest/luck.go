package simtest

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"time"
)

// Fault is one way in which the world goes wrong.
type Fault int

// The faults, by what they affect.
const (
	// The controller and its store.
	Crash Fault = iota
	HalfDone
	Orphaned
	Freeze
	Leap
	Lag
	CommitFails
	CommitLost
	Doubled

	// Clouds, call by call.
	OffersFail
	ListFails
	ListSlow
	ListStale
	ListMisses
	NewMissing
	Lingers
	CreateFails
	CreateLost
	CreateNever
	CreateLate
	CreateTwice
	DestroyFails
	DestroyLost
	TagFails

	// Clouds, for a while.
	Outage
	RateStorm
	QuotaStorm
	Drought
	Reclaiming
	Partition
	PricesMove

	// Instances.
	MakeFails
	BootFails
	BootSlow
	WrongKey
	ProbeFails
	ProbeHangs
	Death
	Reboot
	Reclaimed
	Interrupted
	Ailing
	Hang
	Cut
	HalfOpen
	Moved
	DiskFull

	// Jobs.
	Stubborn
	Undead
	OutOfMemory
	JobFails
	SupervisorDies
	NoImage
	CollectFails

	// People.
	People

	// Clouds again.
	GrowFails

	// Jobs again.
	Forges

	// Clouds once more.
	SwitchFails

	faults // the number of faults
)

// table has the name of each fault and its odds in a bad world: one in this many chances.
var table = [faults]struct {
	name string
	odds int
}{
	Crash:       {"crash", 60},        // the controller is killed after a step
	HalfDone:    {"half-done", 100},   // it is killed between two effects of a step
	Orphaned:    {"orphaned", 5},      // no other starts for hours
	Freeze:      {"freeze", 80},       // it pauses for a while, then continues
	Leap:        {"leap", 150},        // its clock leaps ahead
	Lag:         {"lag", 30},          // its store is slow
	CommitFails: {"commit-fails", 80}, // a commit fails
	CommitLost:  {"commit-lost", 150}, // a commit reports failure although it succeeded
	Doubled:     {"doubled", 20},      // an answer comes twice

	OffersFail:   {"offers-fail", 4},   // types and prices are unavailable
	ListFails:    {"list-fails", 6},    // a list fails, for example because it is only partial
	ListSlow:     {"list-slow", 10},    // a list takes minutes
	ListStale:    {"list-stale", 8},    // a list is answered from an old copy
	ListMisses:   {"list-misses", 40},  // an instance is missing from one list
	NewMissing:   {"new-missing", 4},   // a new instance is in no list for a while
	Lingers:      {"lingers", 4},       // a destroyed instance is listed for minutes
	CreateFails:  {"create-fails", 10}, // a create is refused
	CreateLost:   {"create-lost", 5},   // a create's answer is lost
	CreateNever:  {"create-never", 10}, // a create times out and never takes effect
	CreateLate:   {"create-late", 10},  // a create times out and takes effect later
	CreateTwice:  {"create-twice", 3},  // a repeated create takes effect twice
	DestroyFails: {"destroy-fails", 8}, // a destroy fails, or only its answer is lost
	DestroyLost:  {"destroy-lost", 6},  // a destroy is accepted and has no effect
	TagFails:     {"tag-fails", 4},     // tags cannot be set, or are set and the answer is lost

	Outage:     {"outage", 12},     // every call fails
	RateStorm:  {"rate-storm", 8},  // calls are rate-limited
	QuotaStorm: {"quota-storm", 6}, // a quota allows no more instances than exist
	Drought:    {"drought", 5},     // there is no capacity
	Reclaiming: {"reclaiming", 8},  // the cloud interrupts spot instances
	Partition:  {"partition", 8},   // no instance is reachable
	PricesMove: {"prices-move", 2}, // some prices move

	MakeFails:   {"make-fails", 12},  // an accepted instance cannot be made, and its cloud lists it as failed
	BootFails:   {"boot-fails", 10},  // an instance never answers
	BootSlow:    {"boot-slow", 8},    // its boot takes nearly as long as allowed
	WrongKey:    {"wrong-key", 60},   // it shows another host key
	ProbeFails:  {"probe-fails", 40}, // its boot probe fails from now on
	ProbeHangs:  {"probe-hangs", 40}, // commands on it hang for a while
	Death:       {"death", 40},       // it dies
	Reboot:      {"reboot", 60},      // it reboots
	Reclaimed:   {"reclaimed", 60},   // its cloud interrupts it without a notice
	Interrupted: {"interrupted", 40}, // its cloud interrupts it with a notice
	Ailing:      {"ailing", 80},      // it reports that it is unhealthy
	Hang:        {"hang", 30},        // it is unreachable for a while, and keeps running
	Cut:         {"cut", 15},         // its connection is cut
	HalfOpen:    {"half-open", 25},   // its connection is dead, and nobody notices for a while
	Moved:       {"moved", 40},       // its address changes
	DiskFull:    {"disk-full", 40},   // its disk is full for a while

	Stubborn:       {"stubborn", 6},          // a job ignores SIGTERM
	Undead:         {"undead", 10},           // it ignores SIGKILL too
	OutOfMemory:    {"out-of-memory", 60},    // a job is killed for its memory use
	JobFails:       {"job-fails", 40},        // it ends with exit code 1
	SupervisorDies: {"supervisor-dies", 100}, // so nobody can tell how the job ended
	NoImage:        {"no-image", 60},         // its image cannot be fetched
	CollectFails:   {"collect-fails", 20},    // its output cannot be stored

	People: {"people", 10}, // after a step a person wishes for something

	GrowFails: {"grow-fails", 3}, // a volume cannot be grown, or is grown and the answer is lost

	SwitchFails: {"switch-fails", 3}, // an instance cannot be stopped or started, or is and the answer is lost

	Forges: {"forges", 40}, // a job pretends to be its runner and reports attempts of other instances
}

// String is the fault's name.
func (f Fault) String() string { return table[f].name }

// FaultNamed finds a fault by its name.
func FaultNamed(name string) (Fault, error) {
	for f := range faults {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, fmt.Errorf("there is no fault %q", name)
}

// Luck is how often things go wrong, as one in this many chances; 0 is never. Nothing goes wrong after Until.
type Luck struct {
	Odds  [faults]int
	Until time.Duration
}

// Bad returns all the bad luck there is, except people, for an hour.
func Bad() Luck {
	l := Luck{Until: time.Hour}
	for f := range faults {
		l.Odds[f] = table[f].odds
	}
	return l.Without(People)
}

// Some returns about half of the bad luck. Each seed leaves out other faults, so that a fault which hides another in
// one world does not in the next.
func Some(seed uint64) Luck {
	l, dice := Bad(), rand.New(rand.NewPCG(seed, 1))
	for f := range faults {
		switch dice.IntN(6) {
		case 0, 1, 2:
			l.Odds[f] = 0
		case 3:
			l.Odds[f] *= 3
		}
	}
	return l
}

// Without returns the luck without some faults.
func (l Luck) Without(which ...Fault) Luck {
	for _, f := range which {
		l.Odds[f] = 0
	}
	return l
}

// With returns the luck with some faults as frequent as in a bad world.
func (l Luck) With(which ...Fault) Luck {
	for _, f := range which {
		l.Odds[f] = table[f].odds
	}
	return l
}

// String names the faults in the luck.
func (l Luck) String() string {
	var names []string
	for f, odds := range l.Odds {
		if odds > 0 {
			names = append(names, Fault(f).String())
		}
	}
	return strings.Join(names, ",")
}

// dice are the world's random numbers. Each fault has its own stream, so that leaving one out changes only what follows
// from it; one more stream is for everything that is not a fault.
type dice [faults + 1]rand.PCG

func throw(seed uint64) *dice {
	d := &dice{}
	for i := range d {
		stream := uint64(i)
		switch Fault(i) { // these faults were added after the last stream, whose number is fixed so that every seed keeps its world
		case GrowFails, Forges, SwitchFails:
			stream = uint64(i) + 1
		case faults:
			stream = uint64(GrowFails)
		}
		d[i].Seed(seed, stream)
	}
	return d
}

// below returns a number from 0 to n-1.
func (d *dice) below(f Fault, n uint64) uint64 {
	hi, _ := bits.Mul64(d[f].Uint64(), n)
	return hi
}
