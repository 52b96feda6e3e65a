//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
)

// poolsPlace serves a pool over two zones, whose hooks log every call.
type poolsPlace struct {
	*daemonPlace
	log string
}

// configure writes the configuration with these settings of the pool.
func (p *poolsPlace) configure(pool string) {
	text := strings.Replace(p.configuration("", "pools: {web: {"+pool+", hooks: {created: ./hook.sh, ready: ./hook.sh, stopped: ./hook.sh, vanished: ./hook.sh, destroyed: ./hook.sh}}}\n"),
		"driver: local\n", "driver: local\n    zones: [a, b]\n", 1)
	p.write("drover.yaml", text)
}

func newPoolsPlace(t *testing.T, pool string) *poolsPlace {
	t.Helper()
	p := &poolsPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}}
	p.log = filepath.Join(t.TempDir(), "hooks")
	p.write("hook.sh", "#!/bin/sh\necho $DROVER_HOOK $DROVER_POOL $DROVER_INSTANCE >>"+p.log+"\n")
	if err := os.Chmod(filepath.Join(p.dir, "hook.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.configure(pool)
	t.Cleanup(p.endPool)
	p.serve()
	return p
}

// endPool empties the pool, so that the daemon can drain.
func (p *poolsPlace) endPool() {
	if p.t.Failed() {
		return
	}
	p.configure("size: 0")
	p.end()
}

// pool returns the pool's state.
func (p *poolsPlace) pool() drover.Pool {
	p.t.Helper()
	return read[drover.Pool](p.daemonPlace, "pools", "web")
}

// waitReady waits until the pool has this many instances in each zone, all ready, and no others exist. It returns their
// names.
func (p *poolsPlace) waitReady(a, b int) (names []string) {
	p.t.Helper()
	eventually(p.t, 40*time.Second, fmt.Sprintf("the pool has %d and %d ready instances", a, b), func() bool {
		at := p.pool()
		return at.Ready == a+b && at.ByZone["here/a"] == a && at.ByZone["here/b"] == b && at.Leaving == 0 && at.Reason == nil && len(p.instances()) == a+b
	})
	for _, in := range p.instances() {
		if in.Pool != "web" {
			p.t.Errorf("instance %s belongs to pool %q", in.Name, in.Pool)
		}
		names = append(names, in.Name)
	}
	slices.Sort(names)
	return names
}

// lose kills an instance, as if its cloud had lost it.
func (p *poolsPlace) lose(name string) {
	p.t.Helper()
	text, err := os.ReadFile(p.instancePath(filepath.Join(name, "pid")))
	if err != nil {
		p.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *poolsPlace) hookRan(line string) bool {
	text, _ := os.ReadFile(p.log)
	return slices.Contains(strings.Split(string(text), "\n"), line)
}

// covers P1 P2 P5 P8 P10
func TestAPoolKeepsItsSize(t *testing.T) {
	p := newPoolsPlace(t, "size: 3")
	first := p.names(3)

	t.Log("a lost instance is replaced, and the hooks run")
	p.lose(first[0])
	// The controller notices its silence or its absence from the cloud's list, whichever comes first.
	eventually(t, 30*time.Second, "the controller notices the loss", func() bool { return p.hookRan("vanished web "+first[0]) || p.hookRan("destroyed web "+first[0]) })
	second := p.names(3)
	if slices.Contains(second, first[0]) {
		t.Errorf("%s is still there", first[0])
	}
	for _, name := range second {
		eventually(t, 10*time.Second, "the hooks have run for "+name, func() bool {
			return p.hookRan("created web "+name) && p.hookRan("ready web "+name)
		})
	}

	t.Log("an operator resizes the pool, and the new size survives a restart")
	p.drover("pool", "set", "web", "--size", "1", "--reason", "a quiet night")
	eventually(t, 30*time.Second, "one instance is left", func() bool { at := p.pool(); return at.Wanted == 1 && at.Ready == 1 && len(p.instances()) == 1 })
	p.restart()
	if at := p.pool(); at.Wanted != 1 {
		t.Errorf("after a restart the pool wants %d instances", at.Wanted)
	}
	p.drover("pool", "set", "web", "--size", "4")
	p.waitReady(2, 2)

	t.Log("a removed zone is drained")
	p.configure("size: 2, zones: [b]")
	p.process.signal(syscall.SIGHUP)
	kept := p.waitReady(0, 2)

	t.Log("without its records the controller adopts every instance")
	p.process.kill()
	for _, name := range []string{"drover.db", "drover.db-wal", "drover.db-shm"} {
		if err := os.Remove(p.file(name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	p.serve()
	if now := p.waitReady(0, 2); !slices.Equal(now, kept) {
		t.Errorf("the instances are %q, but were %q", now, kept)
	}
	if gone := p.instances("--all"); len(gone) != 2 {
		t.Errorf("the new records have %d instances, not 2", len(gone))
	}
}

// covers D2
func TestAPoolKeepsStoppedInstances(t *testing.T) {
	p := newPoolsPlace(t, "size: 1, stopped: 1")
	stopped := func() (name string) {
		eventually(t, 60*time.Second, "one is ready and one is stopped", func() bool {
			name = ""
			for _, in := range p.instances() {
				if in.State == drover.InstanceStopped {
					name = in.Name
				}
			}
			at := p.pool()
			return name != "" && at.Ready == 1 && at.Instances == 1 && at.Stopped == 1 && at.Leaving == 0 && at.Reason == nil && len(p.instances()) == 2
		})
		return name
	}
	first := stopped()
	if text := p.drover("pools"); !strings.Contains(text, "1/1") {
		t.Errorf("drover pools: %s", text)
	}

	t.Log("when the ready instance is lost, the stopped one starts and another is stopped in its place")
	for _, in := range p.instances() {
		if in.Name != first {
			p.lose(in.Name)
		}
	}
	eventually(t, 60*time.Second, "the stopped instance is idle", func() bool {
		return slices.ContainsFunc(p.instances(), func(in drover.Instance) bool { return in.Name == first && in.State == drover.InstanceIdle })
	})
	second := stopped()
	if !p.hookRan("stopped web " + second) {
		t.Errorf("no hook ran when %s was stopped", second)
	}
	if second == first {
		t.Errorf("%s was stopped again", first)
	}

	t.Log("without its records the controller recognizes the stopped instance by its tag")
	p.process.kill()
	for _, name := range []string{"drover.db", "drover.db-wal", "drover.db-shm"} {
		if err := os.Remove(p.file(name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	p.serve()
	if third := stopped(); third != second {
		t.Errorf("%s is stopped, not %s", third, second)
	}
}

// covers P1 D3
func TestProbeAndHealthCheckDecideWhetherAPoolInstanceIsReady(t *testing.T) {
	folder, address := t.TempDir(), freeAddress(t)
	port := address[strings.LastIndex(address, ":"):]
	if err := os.WriteFile(filepath.Join(folder, "web.sh"), []byte("#!/bin/sh\nexec page "+address+" "+folder+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPoolsPlace(t, fmt.Sprintf("size: 1, cloud_init: %[1]s/web.sh, boot_probe: test -e %[1]s/proved, health: {http: '%[2]s/', interval: 1s, failures: 3}", folder, port))
	served := func() int {
		text, _ := os.ReadFile(filepath.Join(folder, "served"))
		return len(text)
	}
	answers := func() bool {
		r, err := http.Get("http://" + address)
		if err == nil {
			r.Body.Close()
		}
		return err == nil && r.StatusCode == http.StatusOK
	}

	t.Log("the page answers, but the boot probe fails")
	eventually(t, 30*time.Second, "the page is served", answers)
	if at := p.pool(); at.Ready != 0 {
		t.Errorf("%d instances are ready although their boot probe fails", at.Ready)
	}
	if err := os.WriteFile(filepath.Join(folder, "proved"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := p.names(1)[0]

	t.Log("two health checks fail, and the third passes")
	if err := refuse(folder, 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "two checks have failed", func() bool { left, err := refusals(folder); return err == nil && left == 0 })
	before := served()
	eventually(t, 20*time.Second, "three more checks have passed", func() bool { return served() >= before+3 })
	if now := p.names(1); now[0] != first || len(p.instances("--all")) != 1 {
		t.Errorf("%s was replaced by %q, though it recovered", first, now)
	}

	t.Log("the page is gone")
	text, err := os.ReadFile(filepath.Join(folder, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "the instance is destroyed", func() bool { return p.hookRan("destroyed web " + first) })
	if second := p.names(1)[0]; second == first {
		t.Errorf("%s is still there", first)
	}
	for _, in := range p.instances("--all") {
		if in.Name == first && (in.Reason == nil || in.Reason.Code != drover.ReasonCheck) {
			t.Errorf("%s is gone for the reason %+v", first, in.Reason)
		}
	}
	if !answers() {
		t.Error("the other instance's page does not answer")
	}
}

// names waits until this many instances are ready and spread evenly over the zones, and returns their names.
func (p *poolsPlace) names(n int) (names []string) {
	p.t.Helper()
	eventually(p.t, 40*time.Second, fmt.Sprintf("the pool has %d ready instances", n), func() bool {
		at := p.pool()
		spread := at.ByZone["here/a"] - at.ByZone["here/b"]
		return at.Ready == n && spread*spread <= 1 && at.Leaving == 0 && len(p.instances()) == n
	})
	for _, in := range p.instances() {
		names = append(names, in.Name)
	}
	return names
}
