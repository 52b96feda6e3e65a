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

// The faults, by what they befall.
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

	// What runs on them.
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

	// What runs on instances, again.
	Forges

	// Clouds once more.
	SwitchFails

	faults // how many there are
)

// table says of each fault what it is called, and how often it comes in a bad world: once in so many chances.
var table = [faults]struct {
	name string
	odds int
}{
	Crash:       {"crash", 60},        // the controller is killed after a step
	HalfDone:    {"half-done", 100},   // it is killed between two effects of one step
	Orphaned:    {"orphaned", 5},      // and nobody begins another for hours
	Freeze:      {"freeze", 80},       // it is stopped for a while, and goes on
	Leap:        {"leap", 150},        // its clock leaps ahead
	Lag:         {"lag", 30},          // its store is slow
	CommitFails: {"commit-fails", 80}, // a commit fails
	CommitLost:  {"commit-lost", 150}, // a commit is said to have failed, and has not
	Doubled:     {"doubled", 20},      // an answer comes twice

	OffersFail:   {"offers-fail", 4},   // types and prices cannot be had
	ListFails:    {"list-fails", 6},    // a list fails, maybe because it is only partial
	ListSlow:     {"list-slow", 10},    // a list takes minutes
	ListStale:    {"list-stale", 8},    // a list is answered from an old copy
	ListMisses:   {"list-misses", 40},  // an instance is missing from one list
	NewMissing:   {"new-missing", 4},   // a new instance is in no list for a while
	Lingers:      {"lingers", 4},       // a destroyed instance is listed for minutes
	CreateFails:  {"create-fails", 10}, // a create is refused
	CreateLost:   {"create-lost", 5},   // a create's answer is lost
	CreateNever:  {"create-never", 10}, // a create times out and nothing comes of it
	CreateLate:   {"create-late", 10},  // a create times out and happens afterwards
	CreateTwice:  {"create-twice", 3},  // a create that is asked for again happens again
	DestroyFails: {"destroy-fails", 8}, // a destroy fails, or only its answer is lost
	DestroyLost:  {"destroy-lost", 6},  // a destroy is accepted and nothing comes of it
	TagFails:     {"tag-fails", 4},     // tags cannot be set, or were and the answer is lost

	Outage:     {"outage", 12},     // no call is answered but by errors
	RateStorm:  {"rate-storm", 8},  // calls are limited
	QuotaStorm: {"quota-storm", 6}, // there may be no more than there are
	Drought:    {"drought", 5},     // there is no capacity
	Reclaiming: {"reclaiming", 8},  // spot instances are taken back
	Partition:  {"partition", 8},   // no instance can be reached
	PricesMove: {"prices-move", 2}, // some prices move

	MakeFails:   {"make-fails", 12},  // an instance that was accepted cannot be made, and its cloud lists it so
	BootFails:   {"boot-fails", 10},  // an instance never answers
	BootSlow:    {"boot-slow", 8},    // it takes nearly as long as it may to boot
	WrongKey:    {"wrong-key", 60},   // it shows another host key
	ProbeFails:  {"probe-fails", 40}, // its boot probe fails from now on
	ProbeHangs:  {"probe-hangs", 40}, // commands on it hang for a while
	Death:       {"death", 40},       // it dies
	Reboot:      {"reboot", 60},      // it boots anew
	Reclaimed:   {"reclaimed", 60},   // its cloud takes it back without a word
	Interrupted: {"interrupted", 40}, // its cloud takes it back with a notice
	Ailing:      {"ailing", 80},      // it says that it is not well
	Hang:        {"hang", 30},        // it cannot be reached for a while, and runs on
	Cut:         {"cut", 15},         // its connection is cut
	HalfOpen:    {"half-open", 25},   // its connection is dead, and nobody notices for a while
	Moved:       {"moved", 40},       // its address changes
	DiskFull:    {"disk-full", 40},   // its disk is full for a while

	Stubborn:       {"stubborn", 6},          // a job ignores SIGTERM
	Undead:         {"undead", 10},           // and SIGKILL
	OutOfMemory:    {"out-of-memory", 60},    // a job is killed for its memory
	JobFails:       {"job-fails", 40},        // it ends with exit code 1
	SupervisorDies: {"supervisor-dies", 100}, // so that nobody knows how it ended
	NoImage:        {"no-image", 60},         // its image cannot be fetched
	CollectFails:   {"collect-fails", 20},    // its output cannot be stored

	People: {"people", 10}, // a person wishes for something after a step

	GrowFails: {"grow-fails", 3}, // a volume cannot be grown, or was and the answer is lost

	SwitchFails: {"switch-fails", 3}, // an instance cannot be stopped or started, or was and the answer is lost

	Forges: {"forges", 40}, // a job says in its runner's name that its instance has others' attempts
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

// Luck is how often things go wrong, as one in so many chances; 0 is never. Nothing goes wrong after Until.
type Luck struct {
	Odds  [faults]int
	Until time.Duration
}

// Bad is all the bad luck there is, but for people, for an hour.
func Bad() Luck {
	l := Luck{Until: time.Hour}
	for f := range faults {
		l.Odds[f] = table[f].odds
	}
	return l.Without(People)
}

// Some is about half of the bad luck there is: what is left out differs from seed to seed, so that what hides one fault
// behind another in one world does not in the next.
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

// Without is the luck with less of it.
func (l Luck) Without(which ...Fault) Luck {
	for _, f := range which {
		l.Odds[f] = 0
	}
	return l
}

// With is the luck with as much of a fault as there is in a bad world.
func (l Luck) With(which ...Fault) Luck {
	for _, f := range which {
		l.Odds[f] = table[f].odds
	}
	return l
}

// String names the faults there are.
func (l Luck) String() string {
	var names []string
	for f, odds := range l.Odds {
		if odds > 0 {
			names = append(names, Fault(f).String())
		}
	}
	return strings.Join(names, ",")
}

// dice are the world's: a stream of numbers for each fault, so that leaving one out changes nothing else until
// something follows from it, and one more for what is no fault.
type dice [faults + 1]rand.PCG

func throw(seed uint64) *dice {
	d := &dice{}
	for i := range d {
		stream := uint64(i)
		switch Fault(i) { // the dice for what is no fault are older than the last faults, whose coming left the worlds of all seeds as they were
		case GrowFails, Forges, SwitchFails:
			stream = uint64(i) + 1
		case faults:
			stream = uint64(GrowFails)
		}
		d[i].Seed(seed, stream)
	}
	return d
}

// below is a number from 0 to n-1.
func (d *dice) below(f Fault, n uint64) uint64 {
	hi, _ := bits.Mul64(d[f].Uint64(), n)
	return hi
}
