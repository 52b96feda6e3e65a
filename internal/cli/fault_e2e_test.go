//go:build e2e

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

func TestAnInstanceThatDiesWithoutAController(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(4, "6s", "") // long enough to keep the other instance in use until this one's death is certain
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
			t.Errorf("job %s began %q and ended %q, but %s had died", job, w.begins, w.ends, victim)
		}
	}
	if o := r.outcome(); o.Succeeded != 4 || o.Attempts != 6 || o.Instances != 3 {
		t.Errorf("%+v", o)
	}
}

// TestAChangedHostKey replaces an instance's SSH server with another on the same port, while the instance is still
// listed: its outer process is stopped, so that it does not notice the guest's death.
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
	// A connection that ends with unread data is reset, and its port is free at once.
	eventually(t, 5*time.Second, "the guest has unread data", func() bool { return unread(t, record.Address) })
	for _, guest := range children(t, outer) {
		syscall.Kill(guest, syscall.SIGKILL)
	}
	logins := impostor(t, record.Address)

	if code := r.wait(30 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !regexp.MustCompile(`instance ` + victim + ` is broken: .*its host key has changed`).MatchString(r.err.String()) {
		t.Error("the changed host key was not reported")
	}
	if tried := len(logins); tried > 0 {
		t.Errorf("%d logins were attempted although the host key was wrong", tried)
	}
	wantOnce(t, folder, 1)
	if now := instanceOf(t, folder, "1.0"); now == victim {
		t.Errorf("the job ran on %s again", victim)
	}
	if rep := r.outcome(); rep.Succeeded != 1 || rep.Attempts != 2 || rep.Instances != 2 {
		t.Errorf("%+v", rep)
	}
}

// TestThreeOfFiveInstancesHang silences most instances of a cloud while they stay listed. The two that answer prove
// that the controller's network works, so it gives up the three and reruns their jobs.
//
// covers D3
func TestThreeOfFiveInstancesHang(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := p.witnesses(10, "15s", "") // longer than it takes to consider an instance silent
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
		if !regexp.MustCompile(`instance ` + name + ` is broken: silent`).MatchString(r.err.String()) {
			t.Errorf("%s was not given up", name)
		}
	}
	wantOnce(t, folder, 10)
	if rep := r.outcome(); rep.Succeeded != 10 || rep.Attempts != 16 {
		t.Errorf("%+v", rep)
	}
}

// impostor serves SSH at an address with its own key. The channel gets an element for every attempted login.
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

// unread reports whether all established connections to an address on this host have unread data.
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

// attemptRow is an attempt in the records.
type attemptRow struct {
	id, instance string
	reason       reason
}

// attempts waits until the run's records have attempts in a state, and returns all attempts.
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
