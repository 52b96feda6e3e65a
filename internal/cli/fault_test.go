package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	_ "modernc.org/sqlite"
)

// impatient is a configuration with small times, and a price at which a second costs a hundredth of a cent.
const impatient = `version: 1
clouds:
  here:
    driver: local
    max_instances: 4
    list_interval: 1s
    types: [{name: small, vcpus: 2, memory: 2Gi, disk: 8Gi, price: 0.36}]
instances: {probe_interval: 200ms, probe_timeout: 1s, term_timeout: 500ms, shutdown_timeout: 1s}
`

const pricePerSecond = 0.36 / 3600

// witnesses writes a batch of jobs that write down what happens to them, each job lasting as long as is said, and returns the folder they
// write to.
func (p *place) witnesses(jobs int, durations, more string) string {
	folder := p.t.TempDir()
	p.write("drover.yaml", impatient)
	p.write("batch.yaml", fmt.Sprintf("jobs: [{name: w, array: %d, command: [witness, %s, %s], resources: {memory: 128Mi, disk: 16Mi}%s}]\n",
		jobs, folder, durations, more))
	return folder
}

func TestAnInstanceKilledUnderLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(24, "2s", "")
	r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	eventually(t, 20*time.Second, "jobs run on every instance", func() bool {
		n, _ := begun(t, folder)
		return n >= 8
	})
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)

	lost := p.attempts("lost", 10*time.Second)
	for _, a := range lost {
		if a.instance != victim || a.reason.Code != "instance_lost" || !strings.Contains(a.reason.Text, victim) {
			t.Errorf("attempt %s on %s was lost because %+v", a.id, a.instance, a.reason)
		}
	}
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wantOnce(t, folder, 24)
	if rep := r.outcome(); rep.Succeeded != 24 || rep.Attempts != 24+len(lost) || rep.Instances < 2 {
		t.Errorf("with %d attempts lost: %+v", len(lost), rep)
	}
}

func TestAJobThatMayNotBeLostAgainFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", ", attempts: 1")
	r := p.start("run", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)
	if code := r.wait(20 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	rep := r.outcome()
	if len(rep.Failures) != 1 || len(rep.Failures[0].Attempts) != 1 {
		t.Fatalf("%+v", rep)
	}
	a := rep.Failures[0].Attempts[0]
	if rep.Failures[0].Reason.Code != "attempts" || a.State != "lost" || a.Instance != victim || !strings.Contains(a.Reason.Text, victim) {
		t.Errorf("%+v", rep.Failures[0])
	}
}

// covers D15
// covers D15
func TestAJobThatWasLostShowsTheLastLinesOfTheRunnersLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", ", attempts: 1")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)
	if code := r.wait(20 * time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	want := `(?m)^w\.0: lost once: .*\n    the last lines of the runner's log on ` + victim + `:\n        \d`
	if said := r.err.String(); !regexp.MustCompile(want).MatchString(said) || strings.Contains(said, "runner said") {
		t.Errorf("it says %s", said)
	}
}

func TestAnInstanceThatDiedWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "6s", "") // so long that the other instance is in use until this one's death is certain
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 4)
	r.kill()
	victim := instanceOf(t, folder, "1.0")
	p.killInstance(victim)

	r = p.start("run", "-v", "-o", "json", "--resume", p.runID())
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wantOnce(t, folder, 4)
	for job, w := range testimony(t, folder) {
		died := strings.HasSuffix(w.begins[0], " "+victim)
		if died != (len(w.begins) == 2) || strings.HasSuffix(w.ends[0], " "+victim) {
			t.Errorf("job %s began %q and ended %q, and %s had died", job, w.begins, w.ends, victim)
		}
	}
	if o := r.outcome(); o.Succeeded != 4 || o.Attempts != 6 || o.Instances != 3 {
		t.Errorf("%+v", o)
	}
}

func TestCleaningUpAfterAKill(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 4)
	r.kill()

	listed := p.run("gc", "-o", "json")
	var strays []struct{ Fleet, Name string }
	if err := json.Unmarshal([]byte(listed.out.String()), &strays); err != nil || len(strays) != 2 || strays[0].Fleet != p.runID() {
		t.Errorf("gc lists %s (%v)", listed.out.String(), err)
	}
	if len(processesOf(p.state)) == 0 {
		t.Error("listing has ended what it lists")
	}
	if gc := p.run("gc", "--fleet", p.runID(), "--destroy"); gc.code() != 0 {
		t.Errorf("exit code %d", gc.code())
	}
}

func TestAResumedRunIsOneRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(8, "1500ms", "")
	p.write("other.yaml", impatient)
	began := time.Now()
	r := p.start("run", "-c", "drover.yaml", "--out", "results", "--max-instances", "2", "batch.yaml")
	p.waitBegun(folder, 5) // so the first have ended
	r.kill()
	killed, id := time.Since(began), p.runID()

	for _, other := range [][]string{{"-c", "other.yaml"}, {"--out", "elsewhere"}, {"--max-instances", "3"}, {"--keep", "1h"}} {
		refused := p.run(append([]string{"run", "--resume", id}, other...)...)
		if refused.code() != 2 || !strings.Contains(refused.err.String(), "and is resumed as it was begun") {
			t.Errorf("with %v the exit code is %d: %s", other, refused.code(), refused.err.String())
		}
	}
	r = p.run("run", "-o", "json", "--resume", id, "-c", "drover.yaml", "--out", "results", "--max-instances", "2")
	if r.code() != 0 {
		t.Fatalf("exit code %d", r.code())
	}
	wantOnce(t, folder, 8)
	if o := r.outcome(); o.Jobs != 8 || o.Succeeded != 8 || o.Attempts != 8 || o.Instances != 2 || o.InstanceSeconds < 4 || o.Seconds < killed.Seconds() {
		t.Errorf("killed after %v it says %+v", killed, o)
	}
}

// covers C4
// covers C4
func TestTwoInstancesOfOneNameAreBothDestroyed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 4)
	r.kill()
	p.giveOneName()

	gc := p.start("gc", "--fleet", p.runID(), "--destroy")
	if code := gc.wait(20 * time.Second); code != 0 || !strings.Contains(gc.err.String(), "destroyed 2 instances") {
		t.Errorf("exit code %d: %s", code, gc.err.String())
	}
}

// giveOneName has all instances of the run bear the name of the first, as if the cloud had made one create call twice.
func (p *place) giveOneName() {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.instanceFolder("*"), "tags.json"))
	if err != nil || len(files) < 2 {
		p.t.Fatalf("there are the tags of %v, %v", files, err)
	}
	first, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range files[1:] {
		if err := os.WriteFile(file, first, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for sig, name := range map[syscall.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"} {
		t.Run("with --cancel-on-interrupt "+name+" cancels the jobs and destroys the instances", func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			folder := p.witnesses(12, "1m", "")
			r := p.start("run", "-o", "json", "-c", "drover.yaml", "--cancel-on-interrupt", "batch.yaml")
			p.waitBegun(folder, 2)
			r.signal(sig)
			if code := r.wait(15 * time.Second); code != 130 {
				t.Errorf("exit code %d", code)
			}
			rep := r.outcome()
			if rep.Cancelled != 12 || len(rep.Failures) == 0 || rep.Failures[0].Reason.Text != "cancelled: drover run got "+name {
				t.Errorf("%+v", rep)
			}
			if _, ended := begun(t, folder); ended > 0 {
				t.Errorf("%d jobs came to their end", ended)
			}
		})
	}
	t.Run("a job that ignores TERM is killed after term_timeout", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.write("drover.yaml", impatient)
		r := p.start("run", "-c", "drover.yaml", "--", "sh", "-c", `trap "echo asked" TERM; echo ready; while :; do sleep 0.02; done`)
		eventually(t, 10*time.Second, "the job runs", func() bool { return strings.Contains(r.out.String(), "ready") })
		asked := time.Now()
		r.signal(syscall.SIGINT)
		if code := r.wait(15 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(asked); took < 500*time.Millisecond || !strings.Contains(r.out.String(), "asked") {
			t.Errorf("ended after %v", took)
		}
		if gc := p.run("gc", "--fleet", p.runID(), "--destroy"); gc.code() != 0 {
			t.Errorf("exit code %d of gc", gc.code())
		}
	})
	t.Run("the second leaves at once, and the line it prints cleans up", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.write("drover.yaml", strings.Replace(impatient, "term_timeout: 500ms", "term_timeout: 10m", 1))
		r := p.start("run", "-c", "drover.yaml", "--", "sh", "-c", `trap "" TERM; echo ready; while :; do sleep 0.02; done`)
		eventually(t, 10*time.Second, "the job runs", func() bool { return strings.Contains(r.out.String(), "ready") })
		r.signal(syscall.SIGINT)
		eventually(t, 5*time.Second, "the first is heard", func() bool { return strings.Contains(r.err.String(), "once more leaves at once") })
		r.signal(syscall.SIGINT)
		if code := r.wait(2 * time.Second); code != 130 {
			t.Errorf("exit code %d", code)
		}
		line := regexp.MustCompile(`(?m)^ *drover (gc --fleet run-\w+ --destroy)$`).FindStringSubmatch(r.err.String())
		if line == nil {
			t.Fatal("no line that cleans up")
		}
		if len(processesOf(p.state)) == 0 {
			t.Error("the instance is gone already")
		}
		if gc := p.run(strings.Fields(line[1])...); gc.code() != 0 {
			t.Errorf("exit code %d of gc", gc.code())
		}
	})
}

func TestOneControllerAtATime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "1m", "")
	r := p.start("run", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	second := p.run("run", "--resume", p.runID())
	if code := second.code(); code == 0 || !strings.Contains(second.err.String(), "in use by another controller") {
		t.Errorf("exit code %d of a second controller: %s", code, second.err.String())
	}
	gc := p.run("gc", "--fleet", p.runID(), "--destroy")
	if gc.code() != 2 || !strings.Contains(gc.err.String(), "is still running, so its instances are not destroyed: ") {
		t.Errorf("gc ends with %d and says %s", gc.code(), gc.err.String())
	}
	r.signal(syscall.SIGINT)
	r.wait(10 * time.Second)
	p.run("gc", "--fleet", p.runID(), "--destroy")
}

// TestAChangedHostKey puts another SSH server in the place of an instance's, on the same port, while the instance is still listed: its
// outer process is stopped, so that the death of the guest goes unnoticed.
func TestAChangedHostKey(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(1, "3s", "")
	p.write("drover.yaml", strings.Replace(impatient, "probe_timeout: 1s", "probe_timeout: 20s", 1))
	r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 1)
	victim := instanceOf(t, folder, "1.0")
	var record struct{ Address string }
	text, err := os.ReadFile(filepath.Join(p.instanceFolder(victim), "record.json"))
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		t.Fatal(err)
	}
	outer := p.pid(victim)
	for _, pid := range append(children(t, outer), outer) {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	// A connection that dies with something unread in it is reset, and its port is free at once.
	eventually(t, 5*time.Second, "the guest has something to read", func() bool { return unread(t, record.Address) })
	for _, guest := range children(t, outer) {
		syscall.Kill(guest, syscall.SIGKILL)
	}
	logins := impostor(t, record.Address)

	if code := r.wait(30 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !regexp.MustCompile(`instance ` + victim + ` is broken: .*its host key has changed`).MatchString(r.err.String()) {
		t.Error("no word of the host key")
	}
	if tried := len(logins); tried > 0 {
		t.Errorf("%d logins were tried at a server with a false key", tried)
	}
	wantOnce(t, folder, 1)
	if now := instanceOf(t, folder, "1.0"); now == victim {
		t.Errorf("the job ran on %s again", victim)
	}
	if rep := r.outcome(); rep.Succeeded != 1 || rep.Attempts != 2 || rep.Instances != 2 {
		t.Errorf("%+v", rep)
	}
}

// TestThreeOfFiveInstancesHang has most instances of a cloud fall silent while they stay listed. The two that answer prove that the controller
// hears, so the three are given up and their jobs run again.
//
// covers D3
func TestThreeOfFiveInstancesHang(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(10, "15s", "") // longer than it takes to hold an instance to be silent
	p.write("drover.yaml", strings.Replace(impatient, "max_instances: 4", "max_instances: 5", 1))
	r := p.start("run", "-v", "-o", "json", "-c", "drover.yaml", "batch.yaml")
	p.waitBegun(folder, 10)
	hung := map[string]bool{}
	for job := 0; len(hung) < 3; job++ {
		name := instanceOf(t, folder, fmt.Sprintf("1.%d", job))
		if hung[name] {
			continue
		}
		hung[name] = true
		outer := p.pid(name)
		for _, pid := range append(children(t, outer), outer) {
			syscall.Kill(pid, syscall.SIGSTOP)
		}
	}
	if code := r.wait(time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for name := range hung {
		if !regexp.MustCompile(`instance ` + name + ` is broken: not heard from`).MatchString(r.err.String()) {
			t.Errorf("%s was not given up", name)
		}
	}
	wantOnce(t, folder, 10)
	if rep := r.outcome(); rep.Succeeded != 10 || rep.Attempts != 16 {
		t.Errorf("%+v", rep)
	}
}

// impostor serves SSH at an address with a key of its own. Every login that is tried is an element of the channel.
func impostor(t *testing.T, address string) <-chan struct{} {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	logins := make(chan struct{}, 100)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		logins <- struct{}{}
		return nil, fmt.Errorf("refused")
	}}
	config.AddHostKey(signer)
	var listener net.Listener
	eventually(t, 5*time.Second, "the port is free", func() bool {
		listener, err = net.Listen("tcp", address)
		return err == nil
	})
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go ssh.NewServerConn(conn, config)
		}
	}()
	return logins
}

// unread reports whether all established connections to a server on this host have data that it has not read.
func unread(t *testing.T, address string) bool {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	connections, waiting := 0, 0
	for line := range strings.Lines(string(table)) {
		const listening = "0A"
		f := strings.Fields(line)
		if len(f) < 5 || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) || f[3] == listening {
			continue
		}
		connections++
		if !strings.HasSuffix(f[4], ":00000000") {
			waiting++
		}
	}
	return connections > 0 && waiting == connections
}

func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // a child is listed under the thread that started it
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}

func (p *place) waitBegun(folder string, n int) {
	p.t.Helper()
	eventually(p.t, 20*time.Second, fmt.Sprintf("%d jobs have begun", n), func() bool {
		got, _ := begun(p.t, folder)
		return got >= n
	})
}

// attemptRow is an attempt as the records have it.
type attemptRow struct {
	id, instance string
	reason       reason
}

// attempts waits until the records of the run have attempts in a state, and returns all of them.
func (p *place) attempts(state string, limit time.Duration) (all []attemptRow) {
	p.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.state, "drover", p.runID(), "drover.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	eventually(p.t, limit, "an attempt is "+state, func() bool {
		all = readAttempts(p.t, db, state)
		return len(all) > 0
	})
	return all
}

func readAttempts(t *testing.T, db *sql.DB, state string) (all []attemptRow) {
	t.Helper()
	rows, err := db.Query(`SELECT a.job || '.' || a.idx || '/' || a.number, i.name, a.reason FROM attempts a
		JOIN instances i ON i.id = a.instance WHERE a.state = ?`, state)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a attemptRow
		var text string
		if err := rows.Scan(&a.id, &a.instance, &text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &a.reason); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}
