package engine_test

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// BenchmarkPoolAtRest decides on an event that changes nothing, in a fleet whose instances belong to a pool or to none.
func BenchmarkPoolAtRest(b *testing.B) {
	for _, n := range []int{0, 300} {
		b.Run(fmt.Sprintf("pool=%d", n), func(b *testing.B) {
			fleet := newBusy(b, 300, 0, 1)
			s := fleet.e.State()
			for i := range n {
				s.Instances[i].Pool, s.Instances[i].Template = "web", "t"
			}
			for i := range s.Clouds {
				s.Clouds[i].Listed = s.Now
			}
			if n > 0 {
				s.Settings.Pools = []pool.Spec{{
					Name: "web", Kind: drover.PoolSize, Count: n, Clouds: []string{"c"}, Market: drover.OnDemand, Spread: drover.SpreadBalanced,
					Login: drover.LoginSSH, Cooldown: time.Minute, Template: "t", MaxUnavailable: 1,
				}}
			}
			e, err := engine.New(s)
			if err != nil {
				b.Fatal(err)
			}
			now := s.Now
			e.Apply(engine.Event{At: now, Body: engine.Ticked{}})
			for b.Loop() {
				now++
				if d := e.Apply(engine.Event{At: now, Body: engine.Ticked{}}); len(d.Writes)+len(d.Effects) > 0 {
					b.Fatal("a fleet at rest does something")
				}
			}
		})
	}
}
