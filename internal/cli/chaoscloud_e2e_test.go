//go:build e2e

package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// aimed is a place whose cloud of real OpenSSH servers has exactly the faults that a test sets.
type aimed struct {
	*daemonPlace
	cloud *chaosCloud
}

func newAimed(t *testing.T, plan cloudPlan) *aimed {
	t.Helper()
	needSSHD(t)
	folder, err := os.MkdirTemp("", "drover-aimed-") // short enough for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	p := &aimed{&daemonPlace{place: newPlace(t), address: freeAddress(t)}, newChaosCloud(t, plan, folder)}
	p.write("drover.yaml", fmt.Sprintf(`version: 1
fleet: lab
listen: %s
clouds:
  liar:
    driver: external
    command: [chaos-driver, %s]
    protocol: stream
    max_instances: 5
    list_interval: 1s
    types: [{name: small, vcpus: 1, memory: 8Gi, disk: 20Gi, price: 3600}]
instances: {probe_interval: 500ms, probe_timeout: 2s, idle_timeout: 1s, term_timeout: 1s, shutdown_timeout: 1s}
`, p.address, filepath.Join(folder, "socket")))
	return p
}

// witnesses writes a batch of jobs that each need their own instance, and returns the folder that they write to.
func (p *aimed) witnesses(jobs int, duration string) string {
	folder := p.t.TempDir()
	p.write("batch.yaml", fmt.Sprintf("jobs: [{name: w, array: %d, command: [witness, %s, %s]}]\n", jobs, folder, duration))
	return folder
}

// each calls do for every living instance.
func (p *aimed) each(do func(i int, in *chaosInstance)) {
	living := p.cloud.living()
	p.cloud.mu.Lock()
	defer p.cloud.mu.Unlock()
	for i, in := range living {
		do(i, in)
	}
}

// TestInstancesMissingFromListsAfterARestart kills the controller. Then lists lack both instances for a while, and one
// of them does not answer either. Both are alive, so neither command may start again.
func TestInstancesMissingFromListsAfterARestart(t *testing.T) {
	t.Parallel()
	const lag = 5 * time.Second
	p := newAimed(t, cloudPlan{lag: lag})
	t.Cleanup(p.end)
	p.serve()
	folder := p.witnesses(2, "10s")
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 2)
	eventually(t, 2*lag, "both instances are older than the lag", func() bool {
		old := 0
		p.each(func(_ int, in *chaosInstance) { old += int(min(1, time.Since(in.created)/lag)) })
		return old == 2
	})
	p.process.kill()
	p.each(func(i int, in *chaosInstance) {
		in.hidden = time.Now().Add(3 * time.Second)
		if i == 0 {
			in.hang()
			time.AfterFunc(3*time.Second, in.thaw)
		}
	})
	p.serve()
	p.drover("wait", "--batch", "batch")
	wantOnce(t, folder, 2)
	for job, w := range testimony(t, folder) {
		if len(w.begins) != 1 {
			t.Errorf("job %s started %d times", job, len(w.begins))
		}
	}
}

// TestThreeDeadInstancesOfFive kills three of five instances while lists still show them. The other two answer, so the
// controller gives up on the three.
func TestThreeDeadInstancesOfFive(t *testing.T) {
	t.Parallel()
	p := newAimed(t, cloudPlan{lag: time.Second})
	t.Cleanup(p.end)
	p.serve()
	folder := p.witnesses(5, "6s")
	p.drover("submit", "batch.yaml")
	p.waitBegun(folder, 5)
	for i, in := range p.cloud.living() {
		if i < 3 {
			p.cloud.mu.Lock()
			in.stale = time.Now().Add(time.Hour)
			p.cloud.mu.Unlock()
			in.kill()
		}
	}
	p.drover("wait", "--batch", "batch")
	wantOnce(t, folder, 5)
	if all := p.instances("--all"); len(all) > 8 {
		t.Errorf("%d instances for five jobs, three of which started twice", len(all))
	}
	if strings.Contains(p.process.err.String(), "cut off") {
		t.Error("the controller thought that it was cut off, although two instances answered")
	}
}

// TestAnInstanceListedAfterItsEnd has a cloud that accepts a destroy but ignores it. Later the cloud reports when the
// instance ended, while old lists still show it. The instance must have one record, with the cloud's bill.
func TestAnInstanceListedAfterItsEnd(t *testing.T) {
	t.Parallel()
	const stale = 6 * time.Second
	p := newAimed(t, cloudPlan{lag: 8 * time.Second, describe: true, fate: instanceFate{destroys: []faultKind{idleDestroys}}})
	t.Cleanup(p.end)
	p.serve()
	p.drover("submit", "--wait", "--", "true")
	gone := func() bool { return len(p.instances()) == 0 }
	eventually(t, 20*time.Second, "the instance is gone", gone)
	one := p.cloud.instances[0]
	p.cloud.mu.Lock()
	one.stale = time.Now().Add(stale)
	p.cloud.mu.Unlock()
	eventually(t, 20*time.Second, "lists have shown it again", func() bool {
		p.cloud.mu.Lock()
		defer p.cloud.mu.Unlock()
		return one.shown >= 2 && time.Now().After(one.stale)
	})
	eventually(t, 20*time.Second, "it is gone again", gone)
	all := p.instances("--all")
	if len(all) != 1 || all[0].ProviderID != one.id {
		t.Fatalf("the records are %+v", all)
	}
	if owed := one.ended.Sub(one.created).Seconds(); math.Abs(all[0].Cost-owed) > stale.Seconds()/3 { // a dollar per second
		t.Errorf("recorded $%.2f, but the cloud billed $%.2f", all[0].Cost, owed)
	}
}

// TestCleaningUpTwoInstancesWithOneName has a cloud that creates two instances with one name, and a run that dies
// before it learns of the second.
func TestCleaningUpTwoInstancesWithOneName(t *testing.T) {
	t.Parallel()
	const hidden = time.Hour
	p := newAimed(t, cloudPlan{fate: instanceFate{twin: true, hiddenFor: hidden, destroys: []faultKind{idleDestroys, failedDestroys}, listedFor: time.Second}})
	r := p.start("run", "-c", "drover.yaml", "--", "sleep", "60")
	id := p.runID()
	eventually(t, 20*time.Second, "the cloud has created two instances", func() bool { return len(p.cloud.living()) == 2 })
	r.kill()
	p.each(func(_ int, in *chaosInstance) { in.hidden = time.Time{} })
	clean := p.run("gc", "--fleet", id, "--destroy")
	if code := clean.code(); code != 0 || !strings.Contains(clean.err.String(), "destroyed 2 instances") {
		t.Errorf("exit code %d: %s%s", code, clean.out.String(), clean.err.tail())
	}
	if left := p.cloud.living(); len(left) > 0 {
		t.Errorf("%s (%s) is left", left[0].id, left[0].name)
	}
}
