package simtest

import (
	"slices"
	"testing"
	"time"
)

func TestEveryFaultComes(t *testing.T) {
	if *seeds <= fewSeeds {
		t.Skip("takes hundreds of worlds: run by make simtest")
	}
	var struck [faults]int
	missing := func() int { return slices.Index(struck[:], 0) }
	for seed := uint64(1); missing() >= 0 && seed <= 5000; seed++ { // some faults need rare targets
		r := peopled(seed)
		r.Luck = Bad().With(People)
		r.Luck.Until = 2 * time.Hour
		if seed > 300 { // a fault whose target is rare is tried alone, at every chance
			r.Luck = Luck{Until: r.Luck.Until}
			r.Luck.Odds[missing()] = 1
		}
		w := NewWorld(r)
		if err := w.Run(longest); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, w.Trace())
		}
		for f, n := range w.struck {
			struck[f] += n
		}
	}
	if f := missing(); f >= 0 {
		t.Errorf("%v never occurred", Fault(f))
	}
}

func TestEveryFaultHasANameOfItsOwn(t *testing.T) {
	for f := range faults {
		if named, err := FaultNamed(f.String()); err != nil || named != f {
			t.Errorf("fault %d is named %q, which finds fault %d (%v)", f, f, named, err)
		}
	}
	if _, err := FaultNamed("rain"); err == nil {
		t.Error("rain is a fault")
	}
}
