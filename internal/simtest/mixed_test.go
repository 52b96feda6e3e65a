package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// mixed returns a world with a mixture of jobs and users. The jobs come one after the other, and the settings change.
// Half of the worlds have no bad luck; in others, people make wishes.
func mixed(seed uint64) Recipe {
	dice := rand.New(rand.NewPCG(seed, 9))
	r := Recipe{Seed: seed, Settings: varied(seed, cloudsCD())}
	if seed%2 == 1 {
		r.Luck = Some(seed)
	}
	if seed%6 == 1 {
		r.Luck = r.Luck.With(People)
		r.Luck.Until = 40 * time.Minute
	}
	if dice.IntN(3) == 0 && len(r.Settings.Budgets) == 0 { // no budget is made for volumes
		for i := range r.Settings.Clouds {
			r.Settings.Clouds[i].Disk, r.Settings.Clouds[i].GrowDisk = 20*drover.GiB, true
		}
	}
	at := time.Duration(0)
	for n := range 2 + dice.IntN(9) {
		r.Jobs = append(r.Jobs, mixedJob(int64(n+1), r, dice))
		if n > 0 {
			at += time.Duration(dice.IntN(400)) * time.Second
			r.Late = append(r.Late, at)
		}
	}
	for range dice.IntN(4) {
		to := varied(dice.Uint64(), r.Settings)
		to.Lifecycle.Sharing = r.Settings.Lifecycle.Sharing
		r.Changes = append(r.Changes, Change{time.Duration(dice.IntN(2400)) * time.Second, to})
	}
	if r = r.pooled(); len(r.Settings.Pools) > 0 {
		r.Settings.Clouds[0].MaxInstances += 8 // pools that grow do not take all
	}
	return r
}

// mixedJob returns a job that fits the world's clouds, budgets and limits.
func mixedJob(number int64, r Recipe, dice *rand.Rand) engine.Job {
	one := func(n int) bool { return dice.IntN(n) == 0 }
	j := engine.Job{Number: number, Name: fmt.Sprint("job", number), Attempts: 100, Priority: 1 + dice.IntN(3), Queued: engine.Ranges{{First: -1, Last: -1}}}
	j.User = []string{"ada", "bob", "cyd"}[dice.IntN(3)]
	if project := []string{"p", "q", ""}[dice.IntN(3)]; project != "" {
		j.Labels = map[string]string{shareLabel: project}
	}
	most := drover.MilliCPU(6000)
	switch {
	case j.User == "ada" || j.Labels[shareLabel] == "p": // their budgets allow no more
		most = 1000
	case j.User == "bob":
		most = 5000
	}
	need := drover.Resources{CPU: min(most, drover.MilliCPU(250)<<dice.IntN(6)), Memory: drover.GiB / 2 << dice.IntN(3), Disk: drover.GiB << dice.IntN(6)}
	if need.CPU > 1500 {
		need.Memory *= 2
	}
	if one(3) {
		j.Array = drover.Array{First: dice.IntN(2), Set: true}
		n := 1 + dice.IntN(30)
		switch {
		case one(3) && most > 1000:
			j.Gang = 2 + dice.IntN(2)
			n = j.Gang * (1 + dice.IntN(3))
			need.CPU, need.Memory = min(need.CPU, 1500), min(need.Memory, 2*drover.GiB) // small instances, so that the budgets allow one for each element
		case one(3):
			j.MaxRunning = 1 + dice.IntN(5)
		}
		j.Array.Last = j.Array.First + n - 1
		j.Queued = engine.RangesOf(j.Array)
	}
	j.Shape = drover.Shape{Need: need, Spot: []drover.SpotPolicy{drover.SpotPrefer, drover.SpotPrefer, drover.SpotNever, drover.SpotRequire}[dice.IntN(4)]}
	if j.Gang == 0 && r.Luck.Odds[OutOfMemory] == 0 { // a gang may need several instances, and more memory other types
		j.Shape.Placement = mixedPlacement(j.Shape, dice)
	}
	for before := int64(1); before < number; before++ {
		switch dice.IntN(16) {
		case 0:
			j.After = append(j.After, before)
		case 1:
			j.AfterAny = append(j.AfterAny, before)
		}
	}
	if one(4) {
		j.Retry = drover.Retry{Times: 100, Delay: time.Duration(dice.IntN(60)) * time.Second}
	}
	return timed(r.Seed*100+uint64(number), []engine.Job{j})[0]
}

// mixedPlacement returns a placement that leaves the shape an offering in each cloud.
func mixedPlacement(s drover.Shape, dice *rand.Rand) (p drover.Placement) {
	if dice.IntN(4) == 0 {
		p.Zone = zones[dice.IntN(2)]
	}
	if dice.IntN(6) == 0 && s.Need.CPU <= 1500 && s.Need.Memory <= 2*drover.GiB {
		p.Type = []string{"small", "large"}[dice.IntN(2)]
	}
	if s.Placement = p; dice.IntN(4) == 0 {
		p.MaxPrice = payable(s, dice)
	}
	return p
}

// payable returns a maximum price that suits the shape, even once prices have doubled.
func payable(s drover.Shape, dice *rand.Rand) drover.Money {
	var prices []drover.Money
	for _, o := range Offerings("c") {
		if o.Type.Resources.Disk, o.DiskPrice = 0, gibPrice; s.Accepts(o) {
			prices = append(prices, o.WithVolume(max(s.Need.Disk, 20*drover.GiB)).Price)
		}
	}
	return 2 * prices[dice.IntN(len(prices))]
}

// endsWell returns an error if a job has not succeeded. Without bad luck nothing is tried twice, and few instances are
// rented for nothing: some are, because a job with a higher priority comes, or because earlier ones end sooner.
func endsWell(w *World) error {
	if err := w.AllSucceeded(); err != nil || w.Faults > 0 {
		return err
	}
	for id, n := range w.Disk.begun {
		if n != 1 {
			w.fail("job %v had %d attempts", id, n)
		}
	}
	if w.Unused > max(8, w.Made/4) {
		w.fail("%d of %d instances ran nothing", w.Unused, w.Made)
	}
	return w.broken
}

// covers D2 D3 D18
func TestAMixtureOfJobsEndsWell(t *testing.T) {
	tryWorlds(t, kind{mixed, endsWell}, *seeds)
}
