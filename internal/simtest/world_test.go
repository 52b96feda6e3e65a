package simtest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/driver/drivertest"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// fewSeeds is how many worlds of each kind make test tries; make simtest tries more.
const fewSeeds = 6

var (
	seeds     = flag.Int("seeds", fewSeeds, "how many worlds of each kind to try")
	firstSeed = flag.Uint64("first-seed", 1, "the first world's seed")
	without   = flag.String("without", "", "faults to leave out, by name and comma")
	shortened = flag.Bool("shorten", true, "whether a world that fails is tried with less of everything")
	all       = flag.Bool("all", false, "whether worlds are tried after one that fails, too")
)

func settings() engine.Settings {
	return engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 6, MaxCreating: 3, ListInterval: time.Minute}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
		},
	}
}

// cloudsCD returns two clouds, of which the last may leave.
func cloudsCD() engine.Settings {
	s := settings()
	s.MaxInstances = 7
	s.Clouds[0].MaxInstances = 4
	d := s.Clouds[0]
	d.Name, d.MaxCreating = "d", 2
	s.Clouds = append(s.Clouds, d)
	return s
}

func jobs() []engine.Job {
	shape := func(cpu drover.MilliCPU, spot drover.SpotPolicy) drover.Shape {
		return drover.Shape{Need: drover.Resources{CPU: cpu, Memory: drover.GiB, Disk: drover.GiB}, Spot: spot}
	}
	one := engine.Ranges{{First: -1, Last: -1}}
	return []engine.Job{
		{Number: 1, Name: "many", User: "ada", Labels: map[string]string{"project": "p"}, Shape: shape(1000, drover.SpotPrefer), Array: drover.Array{First: 0, Last: 39, Set: true}, Priority: 1, Attempts: 100, Queued: engine.Ranges{{First: 0, Last: 39}}},
		{Number: 2, Name: "big", User: "bob", Shape: shape(5000, drover.SpotNever), Priority: 5, Attempts: 3, Queued: one},
		{Number: 3, Name: "last", Shape: shape(500, drover.SpotPrefer), Priority: 1, Attempts: 100, After: []int64{1, 2}, Queued: one},
	}
}

// others returns a job like "many" for another project.
func others() engine.Job {
	j := jobs()[0]
	j.Number, j.Name, j.Labels = 4, "others", map[string]string{"project": "q"}
	j.Array.Last, j.Queued = 23, engine.Ranges{{First: 0, Last: 23}}
	return j
}

// gang returns a job of two gangs, each of which takes half of a small fleet. Its user's budget allows one of them,
// even when prices have doubled.
func gang() engine.Job {
	j := jobs()[0]
	j.Number, j.Name, j.User, j.Labels, j.Gang = 5, "gang", "bob", nil, 3
	j.Shape.Need.CPU = 1500
	j.Array.Last, j.Queued = 5, engine.Ranges{{First: 0, Last: 5}}
	return j
}

// delayed returns an array whose failed elements are retried after a delay. At most most elements run at once, unless
// that is 0.
func delayed(most int) engine.Job {
	j := jobs()[0]
	j.Number, j.Name, j.Labels, j.MaxRunning = 5, "delayed", nil, most
	j.Retry = drover.Retry{Times: 100, Delay: 20 * time.Second}
	j.Array.Last, j.Queued = 11, engine.Ranges{{First: 0, Last: 11}}
	return j
}

// ganged adds gangs in some worlds, and in others arrays with delayed retries, half of which limit how many elements
// run at once.
func (r Recipe) ganged() Recipe {
	switch r.Seed % 3 {
	case 0:
		j := gang()
		if r.Seed%2 == 0 {
			j.Retry = drover.Retry{Times: 100, Delay: time.Minute}
		}
		r.Jobs = append(r.Jobs, j)
	case 1:
		r.Jobs = append(r.Jobs, delayed(3*int(r.Seed%2)))
	}
	return r
}

// voluminous lets volumes grow in some worlds and adds a job that wants larger ones on existing instances. It leaves
// out worlds that lose records, since a volume without a record cannot be used.
func (r Recipe) voluminous() Recipe {
	if r.Seed%7 > 2 || r.Lose > 0 || r.PutBack > 0 {
		return r
	}
	r.Settings.Clouds = slices.Clone(r.Settings.Clouds)
	for i := range r.Settings.Clouds {
		r.Settings.Clouds[i].Disk, r.Settings.Clouds[i].GrowDisk = 20*drover.GiB, true
	}
	roomy := jobs()[0]
	roomy.Number, roomy.Name, roomy.Labels, roomy.After = 7, "roomy", nil, []int64{2}
	if len(r.Late) > 0 { // this job comes late itself
		roomy.After = nil
	}
	roomy.Shape.Need.Disk = 30 * drover.GiB
	roomy.Array.Last, roomy.Queued = 4, engine.Ranges{{First: 0, Last: 4}}
	r.Jobs = append(r.Jobs, roomy)
	return r
}

// shared adds another project's job, if the settings have shares.
func (r Recipe) shared() Recipe {
	if r.Settings.Shares.By != "" {
		r.Jobs = append(r.Jobs, others())
	}
	return r
}

// kind is a kind of world: what each seed makes of it, and how it must end.
type kind struct {
	recipe func(seed uint64) Recipe
	ends   func(*World) error
}

// unlucky returns a world with about half of the possible faults, in one or two clouds, which sometimes loses its
// store.
func unlucky(seed uint64) Recipe {
	r := Recipe{Seed: seed, Luck: Some(seed), Settings: settings(), Jobs: timed(seed, jobs())}
	if seed%2 == 0 {
		r.Settings = cloudsCD()
	}
	r.Settings = varied(seed, r.Settings)
	r = r.shared().ganged()
	switch {
	case seed%5 == 0:
		r.Lose = time.Duration(seed%53) * 10 * time.Second
	case seed%5 == 1:
		r = outdated(r)
	case seed%5 == 2:
		r = lateness(r)
	}
	return r.voluminous().pooled()
}

// lateness submits the last job when instances for the others are coming or running.
func lateness(r Recipe) Recipe {
	late := r.Jobs[0]
	late.Number, late.Name, late.User, late.Labels = 6, "late", "bob", nil
	late.Array.Last, late.Queued, late.Timeout = 9, engine.Ranges{{First: 0, Last: 9}}, 3*time.Hour
	r.Jobs = append(r.Jobs, late)
	r.Late = []time.Duration{time.Duration(1+r.Seed%41) * 5 * time.Second}
	return r
}

// outdated puts an older copy of the store back, twice.
func outdated(r Recipe) Recipe {
	r.Copy = time.Duration(r.Seed%61) * 5 * time.Second
	r.PutBack = r.Copy + time.Duration(1+r.Seed%89)*10*time.Second
	if r.Seed%3 == 0 {
		r.Jobs[0].Priority = 0
	}
	return r
}

// limits returns a limit on a zone's instances and one on a quota group's vCPUs, which may be too low for a job.
func limits(dice *rand.Rand) []drover.Limit {
	return []drover.Limit{
		{Zone: "a", Instances: new(1 + dice.IntN(3))},
		{QuotaGroup: "standard", Market: drover.OnDemand, CPU: new(drover.MilliCPU(2000 * (1 + dice.IntN(3))))},
	}
}

// varied changes some of the settings.
func varied(seed uint64, s engine.Settings) engine.Settings {
	dice := rand.New(rand.NewPCG(seed, 2))
	some := func() bool { return dice.IntN(4) == 0 }
	if some() {
		s.Lifecycle.KeepBroken = 5 * time.Minute
	}
	if some() {
		s.Lifecycle.MaxAge = 15 * time.Minute
	}
	if s.Lifecycle.UseOnce = some(); some() {
		s.Keep = 5 * time.Minute
	}
	if some() {
		s.GrowMemory = 2000
	}
	if some() {
		s.Lifecycle.IdleTimeout = 10 * time.Minute
	}
	if some() {
		s.Mix.OnDemand = drover.Part{Base: 1, Percent: 25}
	}
	s.Clouds = slices.Clone(s.Clouds)
	for i := range s.Clouds {
		s.Clouds[i].OffersInterval, s.Clouds[i].Billing.Least = 5*time.Minute, time.Minute
		if some() {
			s.Clouds[i].Billing.Period = 5 * time.Minute
		}
		if some() {
			s.Clouds[i].Limits = limits(dice)
		}
		if some() {
			s.Clouds[i].Reserved = []engine.Reservation{{Type: "large", Count: 1, Price: drover.Dollar / 100}}
		}
	}
	if some() {
		s.Budgets = budgets(some)
	}
	if some() {
		s.Shares = drover.Shares{By: "label:project", Weights: map[string]int{"p": 1 + dice.IntN(3)}}
	}
	if some() {
		s.SpotShare = 30_00
	}
	s.BrokenHook = some()
	s.Lifecycle.PartitionTimeout = []time.Duration{0, 20 * time.Minute, time.Hour}[dice.IntN(3)]
	for i := range s.Clouds {
		s.Clouds[i].ListLag = lags[dice.IntN(len(lags))].lag
		s.Clouds[i].Describe = some() || some()
	}
	s.Lifecycle.Sharing = []drover.Sharing{drover.ShareUser, drover.ShareEveryone}[dice.IntN(2)]
	if some() {
		s.Users = engine.UserLimits{Instances: 3 + dice.IntN(2), VCPUs: drover.MilliCPU(24000 + 8000*dice.IntN(2))} // every gang fits
	}
	return s
}

// lags are how far lists lag in the worlds: for real clouds as far as their drivers document.
var lags = []struct {
	cloud string
	lag   time.Duration
}{{"the local driver", 0}, {"", 4 * time.Second}, {"OpenStack", 30 * time.Second}, {"GCE", time.Minute}, {"Azure", 2 * time.Minute}, {"EC2", 5 * time.Minute}}

// budgets returns budgets whose hourly amount exceeds the cost of the most expensive instance, or of a job's part of
// it, at a doubled price. A job that fits in no budget would never end.
func budgets(some func() bool) []engine.Budget {
	cent := drover.Dollar / 100
	all := []engine.Budget{
		{Hard: engine.Amounts{Hourly: 90 * cent, Daily: 6 * drover.Dollar, Monthly: 20 * drover.Dollar}},
		{Label: "project=p", Hard: engine.Amounts{Hourly: 10 * cent}, Soft: engine.Amounts{Hourly: cent, Daily: 10 * cent}, Stop: some()},
	}
	if some() || some() {
		all = append(all,
			engine.Budget{User: "ada", Hard: engine.Amounts{Hourly: 11 * cent, Daily: drover.Dollar}, Soft: engine.Amounts{Monthly: 5 * cent}},
			engine.Budget{User: "bob", Hard: engine.Amounts{Hourly: 55 * cent}})
	}
	return all
}

// timed gives the jobs timeouts, none shorter than the longest run time.
func timed(seed uint64, jobs []engine.Job) []engine.Job {
	dice := rand.New(rand.NewPCG(seed, 3))
	for i := range jobs {
		jobs[i].Timeout = []time.Duration{0, 0, 35 * time.Minute, 2 * time.Hour}[dice.IntN(4)]
	}
	return guessed(seed, jobs)
}

// guessed gives some jobs an expected run time, which may be a hundred times too long or too short.
func guessed(seed uint64, jobs []engine.Job) []engine.Job {
	dice := rand.New(rand.NewPCG(seed, 4))
	for i := range jobs {
		jobs[i].Expected = []time.Duration{0, 0, time.Second, 10 * time.Minute, 20 * time.Hour}[dice.IntN(5)]
		jobs[i].MaxWait = []time.Duration{0, 0, time.Minute, time.Hour}[dice.IntN(4)]
	}
	return jobs
}

// givenUp returns a world whose user gives up sooner or later.
func givenUp(seed uint64) Recipe {
	r := unlucky(seed)
	r.Jobs = timed(seed, jobs())
	r = r.shared().ganged()
	r.GiveUp, r.Lose, r.PutBack, r.Late = time.Duration(seed%97)*7*time.Second, 0, 0, nil // a user who closes a fleet after losing the store may not have seen this one yet
	return r
}

// peopled returns a world in which people make all kinds of wishes, and which sometimes loses its store.
func peopled(seed uint64) Recipe {
	r := Recipe{Seed: seed, Luck: Some(seed).With(People), Settings: varied(seed, cloudsCD()), Jobs: timed(seed, jobs())}.shared().ganged()
	r.Luck.Until = 40 * time.Minute
	if seed%4 == 0 {
		r.Lose = time.Duration(seed%101) * 20 * time.Second
	} else if seed%4 == 1 {
		r = outdated(r)
	} else if seed%8 == 2 {
		r = lateness(r)
	}
	return r.voluminous().pooled()
}

// pooled adds two pools in some worlds: one with a fixed size, half of the time without logins, and one of spare
// instances or with a floor.
func (r Recipe) pooled() Recipe {
	if r.Seed%4 != 3 {
		return r
	}
	dice := rand.New(rand.NewPCG(r.Seed, 6))
	s := &r.Settings
	s.Budgets, s.Users, s.Clouds = nil, engine.UserLimits{}, slices.Clone(s.Clouds)
	if s.MaxInstances > 0 {
		s.MaxInstances += 10
	}
	var names []string
	for i := range s.Clouds {
		s.Clouds[i].MaxInstances += 8
		s.Clouds[i].Limits = nil
		names = append(names, s.Clouds[i].Name)
	}
	web := pool.Spec{
		Name: "web", Kind: drover.PoolSize, Count: 1 + dice.IntN(4), Clouds: names, Types: []string{"small"}, Market: drover.Spot, Spread: drover.SpreadBalanced,
		Login: []drover.PoolLogin{drover.LoginSSH, drover.LoginNone}[dice.IntN(2)], Cooldown: 2 * time.Minute, Template: "t", MaxUnavailable: 1, MaxSurge: 1,
	}
	warm := web
	warm.Name, warm.Kind, warm.Login, warm.Max = "warm", []drover.PoolKind{drover.PoolSpare, drover.PoolFloor}[dice.IntN(2)], drover.LoginSSH, 4
	warm.Count, warm.Market, warm.Rebalance = 1+dice.IntN(2), drover.OnDemand, dice.IntN(2) == 0
	if dice.IntN(3) == 0 {
		warm.Types, warm.Spread = nil, drover.SpreadCheapest
	}
	if dice.IntN(3) == 0 {
		web.Market, web.Mix.OnDemand = "", drover.Part{Base: 1, Percent: 50}
	}
	s.Pools = []pool.Spec{warm, web}
	keepsStopped(s.Pools, rand.New(rand.NewPCG(r.Seed, 8)).IntN)
	if dice.IntN(2) == 0 {
		nodes := web
		nodes.Name, nodes.Kind, nodes.Count, nodes.Max, nodes.JoinTimeout = "nodes", drover.PoolGroup, 0, 4, 15*time.Minute
		nodes.Clouds, nodes.Zones, nodes.Market, s.Nodes = names[:1], []string{"a"}, drover.OnDemand, true
		s.Pools = append(s.Pools, nodes)
	}
	for i := range s.Pools {
		if s.Pools[i].Kind != drover.PoolGroup && dice.IntN(2) == 0 {
			s.Pools[i].CheckWithin = 10 * time.Minute
		}
	}
	slices.SortFunc(s.Pools, func(a, b pool.Spec) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// crowded returns an unlucky world with 20 to 200 instances and ten times as many array elements.
func crowded(seed uint64) Recipe {
	r := unlucky(seed)
	most := 20 + rand.New(rand.NewPCG(seed, 5)).IntN(181)
	r.Settings.MaxInstances, r.Settings.Budgets, r.Settings.Users = most, nil, engine.UserLimits{}
	r.Settings.Clouds = slices.Clone(r.Settings.Clouds)
	for i := range r.Settings.Clouds {
		c := &r.Settings.Clouds[i]
		c.MaxInstances, c.MaxCreating, c.Limits = most, 20, nil
	}
	r.Jobs[0].Array.Last = 10*most - 1
	r.Jobs[0].Queued = engine.Ranges{{First: 0, Last: r.Jobs[0].Array.Last}}
	return r
}

// covers D2 D3 D9 D16 D21 D24 K6 K7 K12 K14 P8 F3 F6 L1 L2 L14 L20
func TestEveryJobEndsOnceAndNothingIsLeft(t *testing.T) {
	tryWorlds(t, kind{unlucky, (*World).AllSucceeded}, *seeds)
}

// crowdedIn is one in how many worlds is crowded: these take this many times longer.
const crowdedIn = 25

func TestEveryJobOfACrowdEndsOnceAndNothingIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as all other worlds: run by make simtest")
	}
	tryWorlds(t, kind{crowded, (*World).AllSucceeded}, max(1, *seeds/crowdedIn))
}

func TestAFleetThatIsGivenUpLeavesNothing(t *testing.T) {
	tryWorlds(t, kind{givenUp, func(*World) error { return nil }}, *seeds)
}

// covers D5 D14 P1 L3
func TestWhateverPeopleWishAllComesToAGoodEnd(t *testing.T) {
	tryWorlds(t, kind{peopled, (*World).AllSucceeded}, *seeds)
}

// shards is the number of parts into which seeds are divided: more than run in parallel, so that a slow last one does
// not delay the test.
const shards = 8

// tally sums up all worlds and whether one has failed: only the first failure is explained, and the rest are skipped.
var tally struct {
	seeds, events, faults atomic.Int64
	failed                atomic.Bool
}

// TestMain prints how fast the worlds of all kinds ran.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400) // a world is small and makes much short-lived garbage
	began := time.Now()
	code := m.Run()
	if took := time.Since(began).Seconds(); testing.Verbose() && tally.seeds.Load() > 0 {
		each := func(n *atomic.Int64) float64 { return float64(n.Load()) / took }
		fmt.Printf("%d worlds in %.1f s: %d events, %.0f a second and %.0f a CPU second; %d faults, %.0f a second\n", tally.seeds.Load(), took,
			tally.events.Load(), each(&tally.events), float64(tally.events.Load())/processor().Seconds(), tally.faults.Load(), each(&tally.faults))
	}
	os.Exit(code)
}

// processor returns the CPU time that this process has used.
func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// tryWorlds runs a number of worlds of the kind, one per seed. It explains the first that fails, and stops there unless
// the flag all is set.
func tryWorlds(t *testing.T, k kind, worlds int) {
	t.Parallel()
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < worlds && (*all || !tally.failed.Load()); i += shards {
				w, err := k.try(k.of(t, *firstSeed+uint64(i)))
				if err != nil {
					t.Errorf("seed %d: %v", w.recipe.Seed, w.broken)
					if !tally.failed.Swap(true) {
						k.explain(t, w)
					}
				}
				tally.seeds.Add(1)
				tally.events.Add(int64(w.Events))
				tally.faults.Add(int64(w.Faults))
			}
		})
	}
}

// of returns the recipe of a seed, without the faults that the flags leave out.
func (k kind) of(t *testing.T, seed uint64) Recipe {
	r := k.recipe(seed)
	for _, name := range strings.FieldsFunc(*without, func(c rune) bool { return c == ',' }) {
		f, err := FaultNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r.Luck = r.Luck.Without(f)
	}
	return r
}

// longest is how much of its own time a world may take.
const longest = 24 * time.Hour

func (k kind) try(r Recipe) (*World, error) {
	w := NewWorld(r)
	err := w.Run(longest)
	if err == nil {
		err = k.ends(w)
	}
	return w, err
}

// explain prints how a world fails, how to reproduce it, and the shortest world found that breaks the same promise.
func (k kind) explain(t *testing.T, w *World) {
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Logf("again: go test ./internal/simtest -run '^%s$' -args -seeds 1 -first-seed %d", test, w.recipe.Seed)
	if *shortened {
		breach := w.breach
		fails := func(r Recipe) bool {
			w, err := k.try(r)
			return err != nil && w.breach == breach
		}
		r := w.recipe
		if r.Closely = true; !fails(r) {
			r.Closely = false
		}
		w, _ = k.try(Shorten(r, fails))
	}
	r := w.recipe
	t.Logf("shortened to %d jobs and %v of these faults: %v\n%v\n%s", len(r.Jobs), r.Luck.Until, r.Luck, w.broken, w.Trace())
}

// covers D12 K1 K11 F9
func TestWorldWithoutFaultsNeedsNoSecondAttempt(t *testing.T) {
	w := NewWorld(Recipe{Seed: 1, Settings: settings(), Jobs: jobs()})
	if err := w.Run(time.Hour); err != nil {
		t.Fatal(err)
	}
	for id, n := range w.Disk.begun {
		if n != 1 {
			t.Errorf("job %v had %d attempts", id, n)
		}
	}
	// A few more than the limit of 6, since an idle instance is destroyed if it costs far more than a small job needs.
	if w.Made > 8 {
		t.Errorf("%d instances were created, although the limit is 6 and none was lost", w.Made)
	}
}

func TestWorldsUseTheListLagOfEachCloud(t *testing.T) {
	for _, l := range lags {
		if l.cloud != "" {
			drivertest.ShowsLag(t, l.cloud, l.lag)
		}
	}
}

// covers L5
func TestEqualRecipesMakeEqualWorlds(t *testing.T) {
	for seed := uint64(1); seed <= uint64(min(*seeds/2, 10)); seed++ {
		a, errA := kind{peopled, (*World).AllSucceeded}.try(peopled(seed))
		b, errB := kind{peopled, (*World).AllSucceeded}.try(peopled(seed))
		if a.Events != b.Events || a.Faults != b.Faults || a.now != b.now || fmt.Sprint(errA) != fmt.Sprint(errB) || a.Trace() != b.Trace() {
			t.Errorf("seed %d: %d events and %d faults first, then %d and %d", seed, a.Events, a.Faults, b.Events, b.Faults)
		}
	}
}
