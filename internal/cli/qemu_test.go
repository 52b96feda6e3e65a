//go:build qemu

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestQEMU makes the example driver create real virtual machines on this host. make e2e-qemu provides what it needs.
func TestQEMU(t *testing.T) {
	image := os.Getenv("QEMU_IMAGE")
	if image == "" {
		t.Skip("QEMU_IMAGE names no folder with an image: run make e2e-qemu")
	}
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "drivers", "qemu.sh"))
	if err != nil {
		t.Fatal(err)
	}
	configure := func(t *testing.T) *place {
		p := newPlace(t)
		p.write("drover.yaml", fmt.Sprintf(`
version: 1
clouds:
  vms:
    driver: external
    command: [%s]
    options: {image: %s, price: "0.01"}
    max_instances: 2
    list_interval: 12s
instances: {probe_interval: 10s, probe_timeout: 30s}
`, script, image))
		return p
	}
	t.Run("the driver passes the conformance suite", func(t *testing.T) {
		p := configure(t)
		r := p.start("driver", "test", "vms", "-c", "drover.yaml", "--yes", "--wait", "3m")
		if code := r.wait(8 * time.Minute); code != 0 {
			t.Errorf("exit code %d", code)
		}
		t.Logf("%s", r.out.String())
	})
	t.Run("jobs run on the instances, and the jobs of an instance killed from outside run again", func(t *testing.T) {
		p := configure(t)
		p.write("batch.yaml", `
name: machines
jobs:
  - name: greet
    array: 4
    command: [sh, -c, "uname -r; hostname; sleep 15; echo $DROVER_ARRAY_INDEX >made"]
    outputs: [made]
    resources: {vcpus: 1, memory: 64Mi, disk: 32Mi}
`)
		r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
		killed := 0
		eventually(t, 3*time.Minute, "a job runs on an instance", func() bool {
			killed = instanceAtWork(p, r)
			return killed != 0
		})
		if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := r.wait(6 * time.Minute); code != 0 {
			t.Errorf("exit code %d", code)
		}
		o := r.outcome()
		if o.Succeeded != 4 || o.Attempts < 5 || o.Instances < 2 {
			t.Errorf("%+v", o)
		}
		logs, _ := filepath.Glob(filepath.Join(p.dir, "drover-out", "machines", "logs", "*.out"))
		if len(logs) != 4 {
			t.Errorf("logs: %v", logs)
		}
		for _, log := range logs {
			if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "cloud-amd64") {
				t.Errorf("%s was not written on an instance: %s, %v", log, text, err)
			}
		}
		if left := instanceProcesses(p); len(left) > 0 {
			t.Errorf("instances are left: %v", left)
		}
	})
	t.Run("a job cannot read, signal or see another user's job on the same instance", func(t *testing.T) {
		p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
		p.write("drover.yaml", fmt.Sprintf(`
version: 1
fleet: lab
listen: %s
clouds:
  vms:
    driver: external
    command: [%s]
    options: {image: %s, price: "0.01"}
    max_instances: 1
    list_interval: 12s
instances: {probe_interval: 10s, probe_timeout: 30s, sharing: everyone}
`, p.address, script, image))
		t.Cleanup(p.end)
		p.serve()
		submit := func(user, command string) *process {
			p.write(user+".token", p.drover("token", "create", "--user", user, "--role", "submit"))
			p.write(user+".yaml", fmt.Sprintf("jobs: [{name: %s, command: [sh, -c, %q], resources: {vcpus: 0.25, memory: 32Mi, disk: 16Mi}}]\n", user, command))
			return p.start("submit", "--server", "http://"+p.address, "--token", "file:"+user+".token", "--wait", user+".yaml")
		}
		ada := submit("ada", "echo s3cret >secret; echo s3cret >/tmp/secret; id -u; i=0; while [ $i -lt 60 ]; do sleep 0.5; i=$((i+1)); done; cat secret")
		eventually(t, 3*time.Minute, "ada's job runs", func() bool { return strings.Contains(p.drover("jobs"), "running") })
		bob := submit("bob", `id -u; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -c s3cre[t]; find / -name secret 2>/dev/null | wc -l; ls /proc | grep -c '^[0-9]'; kill -9 -1; echo done`)
		if code := bob.wait(2 * time.Minute); code != 0 {
			t.Errorf("bob's job ended with %d: %s", code, bob.err.tail())
		}
		if isClosed(ada.ended) {
			t.Error("ada's job did not run beside bob's")
		}
		if code := ada.wait(2 * time.Minute); code != 0 {
			t.Errorf("ada's job ended with %d: %s", code, ada.err.tail())
		}
		outA, outB := strings.Fields(p.drover("logs", "1")), strings.Fields(p.drover("logs", "2"))
		if len(outA) != 2 || outA[1] != "s3cret" {
			t.Errorf("ada's job printed %q", outA)
		}
		if len(outB) < 5 || outB[0] == outA[0] || outB[0] == "0" || outB[1] != "0" || outB[2] != "0" || outB[len(outB)-1] != "done" {
			t.Errorf("bob's job printed %q", outB)
		}
		if n := len(p.instances("--all")); n != 1 {
			t.Errorf("the jobs ran on %d instances", n)
		}
	})
}

var (
	readyLine   = regexp.MustCompile(`instance (\S+) ready after`)
	runningLine = regexp.MustCompile(`, [1-9][0-9]* running;`)
)

// instanceAtWork returns the process of the first ready instance, once a job runs; 0 before.
func instanceAtWork(p *place, r *process) int {
	said := r.err.String()
	ready := readyLine.FindStringSubmatch(said)
	if ready == nil || !runningLine.MatchString(said) {
		return 0
	}
	for folder, pid := range instanceProcesses(p) {
		if filepath.Base(folder) == ready[1] {
			return pid
		}
	}
	return 0
}

// instanceProcesses returns the processes of the instances that a place's runs have created, by folder.
func instanceProcesses(p *place) map[string]int {
	pids := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(p.state, "drover", "*", "vms", "*", "*", "pid"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if pid, parseErr := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && parseErr == nil && syscall.Kill(pid, 0) == nil {
			pids[filepath.Dir(f)] = pid
		}
	}
	return pids
}
