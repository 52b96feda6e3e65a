package cli

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
)

// daemonPlace is a place with a daemon of the fleet "lab".
type daemonPlace struct {
	*place
	address string
	process *process
}

// newDaemonPlace writes the configuration, with additional settings under instances and at the top level, and starts
// the daemon. When the test ends, it drains the daemon and checks that nothing of the fleet is left.
func newDaemonPlace(t *testing.T, instances, more string) *daemonPlace {
	t.Helper()
	p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
	p.write("drover.yaml", p.configuration(instances, more))
	t.Cleanup(p.end)
	p.serve()
	return p
}

func (p *daemonPlace) configuration(instances, more string) string {
	return fmt.Sprintf(`version: 1
fleet: lab
listen: %s
clouds:
  here:
    driver: local
    max_instances: 4
    list_interval: 1s
    types: [{name: small, vcpus: 2, memory: 2Gi, disk: 8Gi, price: 0.36}]
instances: {probe_interval: 200ms, probe_timeout: 1s, term_timeout: 500ms, shutdown_timeout: 1s%s}
%s`, p.address, instances, more)
}

// freeAddress returns a free address on loopback. The kernel gives its port to nobody else, even while a daemon
// restarts.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, end = 16000, 32000 // the kernel's ephemeral ports begin at 32768
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(end-first)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// serve starts the daemon and waits until it answers.
func (p *daemonPlace) serve(args ...string) {
	p.t.Helper()
	p.process = p.start(append([]string{"serve", "-c", "drover.yaml"}, args...)...)
	eventually(p.t, 20*time.Second, "the daemon answers", func() bool {
		r, err := http.Get("http://" + p.address + "/readyz")
		if err == nil {
			r.Body.Close()
		}
		return err == nil && r.StatusCode == http.StatusOK || isClosed(p.process.ended)
	})
	if isClosed(p.process.ended) {
		p.t.Fatalf("the daemon ended: %s", p.process.err.tail())
	}
}

// restart kills the daemon and starts it again.
func (p *daemonPlace) restart() {
	p.t.Helper()
	p.process.kill()
	p.serve()
}

// end kills every instance, so that none keeps the drain from ending, drains the daemon, and removes its folder.
func (p *daemonPlace) end() {
	if p.process == nil || p.t.Failed() {
		return
	}
	if !isClosed(p.process.ended) {
		p.process.kill()
	}
	p.serve("--drain")
	for _, in := range p.instances() {
		if in.Idle == drover.IdleHold {
			p.drover("release", in.Name)
		}
	}
	p.process.signal(syscall.SIGTERM)
	if code := p.process.wait(30 * time.Second); code != 0 {
		p.t.Errorf("the drained daemon exited with %d", code)
	}
	if left, _ := filepath.Glob(p.instancePath("*")); len(left) > 0 {
		p.t.Errorf("instances are left: %q", left)
	}
	os.RemoveAll(filepath.Join(p.state, "drover", "lab"))
}

// file returns the path of a file or folder of the daemon.
func (p *daemonPlace) file(name string) string { return filepath.Join(p.state, "drover", "lab", name) }

// instancePath returns the local driver's folder of an instance.
func (p *daemonPlace) instancePath(name string) string {
	return filepath.Join(p.file("drover.d"), "here", "lab", name)
}

// drover runs a command against the daemon, which must succeed, and returns what it printed.
func (p *daemonPlace) drover(args ...string) string {
	p.t.Helper()
	r := p.run(append([]string{"-c", "drover.yaml"}, args...)...)
	if r.code() != 0 {
		p.t.Fatalf("drover %s: exit code %d\n%s", strings.Join(args, " "), r.code(), r.err.tail())
	}
	return r.out.String()
}

// read parses a command's JSON output.
func read[T any](p *daemonPlace, args ...string) (v T) {
	p.t.Helper()
	text := p.drover(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		p.t.Fatalf("drover %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return v
}

func (p *daemonPlace) instances(args ...string) []drover.Instance {
	p.t.Helper()
	return read[[]drover.Instance](p, append([]string{"instances"}, args...)...)
}

func (p *daemonPlace) instance(name string) drover.Instance {
	p.t.Helper()
	return read[drover.Instance](p, "instances", name)
}

func (p *daemonPlace) jobs() []drover.Job {
	p.t.Helper()
	return read[[]drover.Job](p, "jobs", "--elements")
}

// waitFor polls an instance until a condition holds.
func (p *daemonPlace) waitFor(name, what string, holds func(drover.Instance) bool) {
	p.t.Helper()
	eventually(p.t, 30*time.Second, name+" "+what, func() bool { return holds(p.instance(name)) })
}

// backUp copies records while a controller is using them.
func backUp(t *testing.T, records string) (copied string) {
	t.Helper()
	copied = filepath.Join(t.TempDir(), "backup.db")
	db, err := sql.Open("sqlite", records)
	if err == nil {
		_, err = db.Exec(`VACUUM INTO ?`, copied)
		db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// putBack replaces the records with a copy.
func putBack(t *testing.T, records, copied string) {
	t.Helper()
	text, err := os.ReadFile(copied)
	for _, suffix := range []string{"-wal", "-shm"} {
		os.Remove(records + suffix)
	}
	if err == nil {
		err = os.WriteFile(records, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
