//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
)

// webPlace is examples/web-pool in its own folder, behind a real nginx.
type webPlace struct {
	*daemonPlace
	page  string
	nginx *exec.Cmd
}

func newWebPlace(t *testing.T) *webPlace {
	t.Helper()
	nginx := ""
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			nginx = path
		}
	}
	if _, err := exec.LookPath("busybox"); nginx == "" || err != nil {
		t.Skip("the example needs nginx and busybox: apt-get install nginx-light busybox-static")
	}
	p := &webPlace{daemonPlace: &daemonPlace{place: newPlace(t), address: freeAddress(t)}}
	page := freeAddress(t)
	p.page = "http://" + page + "/"
	for _, name := range []string{"web.sh", "upstream.sh", "load.sh", "nginx.conf"} {
		text := readExample(t, name)
		p.write(name, strings.ReplaceAll(text, "127.0.0.1:8480", page))
		if err := os.Chmod(filepath.Join(p.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tmp", "upstreams"} {
		if err := os.Mkdir(filepath.Join(p.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.configure("size: 3\n")
	p.nginx = exec.Command(nginx, "-p", p.dir, "-c", "nginx.conf")
	p.nginx.Stderr = os.Stderr
	if err := p.nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.configure("size: 0\n")
		p.end()
		_ = p.nginx.Process.Signal(syscall.SIGTERM)
		_ = p.nginx.Wait()
	})
	p.serve()
	return p
}

// reconfigure applies another setting that gives the pool three instances.
func (p *webPlace) reconfigure(size string) {
	p.t.Helper()
	p.configure(size)
	before := p.process.err.tail()
	p.process.signal(syscall.SIGHUP)
	eventually(p.t, 20*time.Second, "the controller reloads the configuration", func() bool { return p.process.err.tail() != before })
	p.waitReady(3)
}

func readExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/web-pool", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// configure writes the example's configuration for this place, with another line for the pool's size. Instances die
// only when the test kills them.
func (p *webPlace) configure(size string) {
	p.t.Helper()
	text := readExample(p.t, "drover.yaml")
	for _, change := range [][2]string{
		{"fleet: web\nstate: sqlite:drover.db\n", "fleet: lab\nlisten: " + p.address + "\n"},
		{"    faults: {sudden_death: 2m}\n", ""},
		{"size: 3\n", size},
	} {
		if !strings.Contains(text, change[0]) {
			p.t.Fatalf("the example has no %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	p.write("drover.yaml", text)
}

// waitReady waits until the pool has had this many ready instances for a second, all of one template, and nginx has the
// same number.
func (p *webPlace) waitReady(n int) {
	p.t.Helper()
	last := time.Now() // when this was last untrue
	eventually(p.t, 2*time.Minute, fmt.Sprintf("%d instances serve the page", n), func() bool {
		at := read[drover.Pool](p.daemonPlace, "pools", "web")
		known, _ := filepath.Glob(filepath.Join(p.dir, "upstreams", "*.conf"))
		if at.Ready != n || at.Leaving > 0 || at.Outdated > 0 || len(known) != n || !p.reloaded() {
			last = time.Now()
		}
		return time.Since(last) > time.Second
	})
}

// reloaded reports whether nginx has no process left that serves an earlier configuration.
func (p *webPlace) reloaded() bool {
	pid := p.nginx.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	return err == nil && len(strings.Fields(string(children))) == 1
}

func (p *webPlace) answers() bool {
	r, err := (&http.Client{Timeout: 2 * time.Second}).Get(p.page)
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// lose kills an instance and all its processes.
func (p *webPlace) lose(name string) {
	p.t.Helper()
	(&poolsPlace{daemonPlace: p.daemonPlace}).lose(name)
}

// covers P1 P2 P4 P5 P6 P10
func TestAWebPoolServesThroughEverything(t *testing.T) {
	p := newWebPlace(t)
	p.waitReady(3)
	eventually(t, 10*time.Second, "nginx serves the page", p.answers)

	const longest = 600 // in seconds; the upper bound
	load := exec.Command(filepath.Join(p.dir, "load.sh"), fmt.Sprint(longest), p.page)
	var said strings.Builder
	load.Stdout, load.Stderr = &said, &said
	load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	for _, event := range []struct {
		what string
		do   func()
	}{
		{"an instance is killed", func() { p.lose(p.instances()[0].Name); p.waitReady(3) }},
		{"the controller is killed and started again", func() { p.restart(); p.waitReady(3) }},
		{"an instance is killed while there is no controller", func() {
			name := p.instances()[0].Name
			p.process.kill()
			p.lose(name)
			p.serve()
			p.waitReady(3)
		}},
		{"the size rises", func() { p.drover("pool", "set", "web", "--size", "5"); p.waitReady(5) }},
		{"the size falls", func() { p.drover("pool", "set", "web", "--size", "3"); p.waitReady(3) }},
		{"the template changes", func() { p.reconfigure("size: 3\n    disk: 1Gi\n") }},
		{"a zone is removed", func() { p.reconfigure("size: 3\n    disk: 1Gi\n    zones: [a, b]\n") }},
	} {
		t.Log(event.what)
		event.do()
		if !p.answers() && !p.answers() {
			t.Errorf("%s: the page does not answer", event.what)
		}
	}
	if err := load.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the load ended by itself: %v\n%s", err, &said)
	}
	err := load.Wait()
	t.Logf("%s", &said)
	if err != nil || !strings.Contains(said.String(), " 0 failed") {
		t.Errorf("requests failed: %v\n%s", err, &said)
	}
}
