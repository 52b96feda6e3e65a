package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drover"
	"drover/internal/engine"
)

// Snapshot is a controller's present.
type Snapshot struct {
	Census  engine.Census
	Pools   []drover.Pool
	Jobs    map[drover.JobState]int // elements of arrays one by one
	Events  int                     // waiting to be decided on
	Effects map[string]int          // under way, by kind
}

// Source takes a Snapshot. It returns an error if the controller does not answer.
type Source func(context.Context) (Snapshot, error)

// How long a scrape waits for a snapshot, and how long a snapshot is reused: several scrapers cost the loop no more
// than one.
const (
	patience = 2 * time.Second
	fresh    = time.Second
)

// present collects the figures of the present when they are requested.
type present struct {
	refused atomic.Bool // the configuration was refused

	build Build

	mu     sync.Mutex
	source Source    // guarded by mu
	last   Snapshot  // guarded by mu
	err    error     // of taking last; guarded by mu
	taken  time.Time // guarded by mu
}

func (p *present) ask(source Source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.source, p.taken = source, time.Time{}
}

// Describe sends the descriptions of what Collect may send.
func (p *present) Describe(to chan<- *prometheus.Desc) {
	for _, m := range table {
		if m.ofPresent() {
			to <- m.desc()
		}
	}
}

// Collect sends the figures of a snapshot.
func (p *present) Collect(to chan<- prometheus.Metric) {
	figure(to, buildInfo, 1, p.build.Version, p.build.Revision, p.build.Go)
	refused := 0.
	if p.refused.Load() {
		refused = 1
	}
	figure(to, configRefused, refused)
	s, err := p.snapshot()
	if err != nil {
		figure(to, loopAnswering, 0)
		return
	}
	figure(to, loopAnswering, 1)
	figure(to, spent, s.Census.Spent.USD())
	figure(to, eventsWaiting, float64(s.Events))
	for kind, n := range s.Effects {
		figure(to, effectsInFlight, float64(n), kind)
	}
	for state, n := range s.Jobs {
		figure(to, jobs, float64(n), string(state))
	}
	oldest := 0.
	if s.Census.Oldest != 0 {
		oldest = max(0, time.Since(s.Census.Oldest.Std()).Seconds())
	}
	figure(to, jobsOldest, oldest)
	collectWaiting(to, jobsWaiting, s.Census.Waiting)
	collectWaiting(to, instancesWaiting, s.Census.Standing)
	collectStock(to, s.Census.Stock)
	collectPools(to, s.Pools)
	collectBudgets(to, s.Census.Budgets)
	collectBlocks(to, s.Census.Blocks)
	collectSights(to, s.Census.Clouds)
}

// snapshot returns a fresh snapshot.
func (p *present) snapshot() (Snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.source == nil {
		return Snapshot{}, context.Canceled
	}
	if time.Since(p.taken) > fresh {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		p.last, p.err = p.source(ctx)
		p.taken = time.Now()
	}
	return p.last, p.err
}

func collectWaiting(to chan<- prometheus.Metric, name string, all []drover.Waiting) {
	counts := map[string]int{}
	for _, w := range all {
		counts[w.Reason.Code] += w.Count
	}
	for code, n := range counts {
		figure(to, name, float64(n), code)
	}
}

func collectBlocks(to chan<- prometheus.Metric, all []engine.Block) {
	counts := map[[2]string]int{}
	for _, b := range all {
		counts[[2]string{b.Cloud, string(b.Reason.Cause)}]++
	}
	for key, n := range counts {
		figure(to, blocks, float64(n), key[0], key[1])
	}
}

// collectBudgets names budgets by their place in the configuration, since people's names must not be labels of a
// metric: fleet, or user or label with a number, counted from 1.
func collectBudgets(to chan<- prometheus.Metric, all []engine.BudgetState) {
	places := map[string]string{}
	counts := map[string]int{}
	for _, b := range all {
		name, known := places[b.Scope]
		if !known {
			kind, _, several := strings.Cut(b.Scope, " ")
			counts[kind]++
			if name = kind; several {
				name = fmt.Sprintf("%s-%d", kind, counts[kind])
			}
			places[b.Scope] = name
		}
		for kind, limit := range map[string]drover.Money{"hard": b.Hard, "soft": b.Soft} {
			if limit > 0 {
				figure(to, budgetLimit, limit.USD(), name, b.Window, kind)
			}
		}
		figure(to, budgetSpent, b.Spent.USD(), name, b.Window)
		figure(to, budgetPledged, b.Committed.USD(), name, b.Window)
	}
}

func collectPools(to chan<- prometheus.Metric, all []drover.Pool) {
	for _, p := range all {
		figure(to, poolWanted, float64(p.Wanted), p.Name)
		figure(to, poolInstances, float64(p.Instances), p.Name)
		figure(to, poolReady, float64(p.Ready), p.Name)
		figure(to, poolStopped, float64(p.Stopped), p.Name)
	}
}

func collectSights(to chan<- prometheus.Metric, all []engine.Sight) {
	for _, s := range all {
		partition := 0.
		if s.Partition {
			partition = 1
		}
		figure(to, cloudPartition, partition, s.Cloud)
		figure(to, cloudListed, time.Duration(s.Listed).Seconds(), s.Cloud)
		figure(to, throttles, float64(s.Throttles), s.Cloud)
	}
}

// taken is what attempts use of the instances of one type.
type taken struct {
	resources drover.Resources
	price     drover.Money
}

func collectStock(to chan<- prometheus.Metric, stock []engine.Stock) {
	sums := map[[3]string]taken{}
	for _, s := range stock {
		kind := []string{s.Cloud, s.Type, string(s.Market), string(s.State), string(s.Idle)}
		figure(to, instances, float64(s.Instances), kind...)
		figure(to, instancesConnected, float64(s.Connected), kind...)
		figure(to, instancesHourly, s.Hourly.USD(), kind...)
		figure(to, instancesVCPUs, vcpus(s.Has), kind...)
		figure(to, instancesMemory, float64(s.Has.Memory), kind...)
		key := [3]string(kind[:3])
		sums[key] = taken{sums[key].resources.Plus(s.Used, 1), sums[key].price + s.UsedPrice}
	}
	for key, sum := range sums {
		figure(to, allocatedHourly, sum.price.USD(), key[:]...)
		figure(to, allocatedVCPUs, vcpus(sum.resources), key[:]...)
		figure(to, allocatedMemory, float64(sum.resources.Memory), key[:]...)
	}
}

func vcpus(r drover.Resources) float64 { return float64(r.CPU) / 1000 }

// figure sends one figure of a metric of the table.
func figure(to chan<- prometheus.Metric, name string, value float64, labels ...string) {
	m := lookUp(name)
	sort := prometheus.GaugeValue
	if m.kind == counter {
		sort = prometheus.CounterValue
	}
	to <- prometheus.MustNewConstMetric(m.desc(), sort, value, labels...)
}

func (m metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.name, m.help, m.labels, nil) }
