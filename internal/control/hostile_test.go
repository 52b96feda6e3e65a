package control

import (
	"archive/tar"
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/wire"
)

// hostileFile, in a folder above those of instances, makes the runners of some instances hostile: those whose name ends
// with the file's content. A hostile runner has a real login and sends whatever it likes.
const hostileFile = "hostile"

// hostile reports whether the runner on this process's instance should be hostile.
func hostile() bool {
	folder, _ := os.Getwd()
	for in := folder; in != "/" && in != "."; in = filepath.Dir(in) {
		if ends, err := os.ReadFile(filepath.Join(in, hostileFile)); err == nil {
			return strings.Contains(folder+"/", string(ends)+"/")
		}
	}
	return false
}

// beHostile runs the hostile runner.
func beHostile(role string) {
	if role == "bulk" {
		hostileBulk()
		return
	}
	lines := wire.NewConn(os.Stdin, os.Stdout)
	var m wire.Message
	if lines.Read(&m) != nil || m.Hello == nil {
		return
	}
	h := *m.Hello
	h.Epoch = math.MaxInt64
	for n := range int64(1000) { // as many as fit: other users' jobs, final ones, ones that never existed, impossible ones
		id := drover.AttemptID{Job: drover.JobID{Number: []int64{1, 2, 3, 900, math.MaxInt64}[n%5], Index: []int{-1, 0, math.MaxInt32}[n%3]}, Number: []int{1, 2, math.MaxInt, int(n)}[n%4]}
		a := wire.Attempt{ID: id, Proof: strings.Repeat("f", int(n%70))}
		if n < 20 {
			a.Exit = forgedExit()
		}
		h.Attempts = append(h.Attempts, a)
	}
	h.Log = []string{strings.Repeat("\x1b[2J\u202e", 2000)}
	if err := lines.Write(wire.Message{Hello: &h}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	given := make(chan wire.Start, 100)
	go flood(lines, given)
	for {
		var m wire.Message
		if lines.Read(&m) != nil {
			return
		}
		if m.Start != nil {
			lines.Write(wire.Message{Started: &wire.Started{ID: m.Start.ID}})
			select {
			case given <- *m.Start:
			default:
			}
		}
		if m.Ping != nil {
			lines.Write(wire.Message{Pong: m.Ping})
		}
	}
}

func forgedExit() *drover.Exit {
	return &drover.Exit{Stdout: strings.Repeat("forged\x1b]0;\a", 300), StdoutLen: math.MaxInt64, StderrLen: -1, CPU: math.MaxInt64, MaxRSS: math.MinInt64,
		Signal: strings.Repeat("s", 10000), Cause: "anything", Text: strings.Repeat("\u202e", 5000), Started: math.MaxInt64, Ended: math.MinInt64}
}

// flood sends what no runner should send, as long as anybody listens.
func flood(lines *wire.Conn, given <-chan wire.Start) {
	var own []wire.Start
	for n := int64(0); ; n++ {
		select {
		case s := <-given:
			own = append(own, s)
		default:
		}
		id := drover.AttemptID{Job: drover.JobID{Number: 1 + n%4, Index: -1}, Number: int(1 + n/4%50)}
		said := []wire.Message{
			{Exited: &wire.Exited{ID: id, Exit: *forgedExit()}},
			{Started: &wire.Started{ID: id}},
			{Refused: &wire.Refused{ID: id, Text: strings.Repeat("no\n", 10000)}},
			{Missing: &wire.Missing{ID: id, Hashes: []string{strings.Repeat("0", 64), "../../etc/passwd"}}},
			{API: &wire.API{Conn: n}},
			{Log: &wire.Log{Line: strings.Repeat("\x1b[31m", 2000)}},
			{Ailing: &wire.Ailing{}},
			{Notice: &wire.Notice{Notice: drover.Notice{Cause: strings.Repeat("c", 5000), Deadline: math.MaxInt64}}},
			{Notice: &wire.Notice{}},
			{},
		}
		for _, s := range own { // the proof of its own attempt, replayed for another attempt
			said = append(said, wire.Message{Exited: &wire.Exited{ID: id, Exit: *forgedExit(), Proof: s.Proof}})
		}
		for _, m := range said {
			if lines.Write(m) != nil {
				return
			}
		}
		if n == 3000 { // then the ends of its own attempts, twice and with different exits
			for _, s := range own {
				lines.Write(wire.Message{Exited: &wire.Exited{ID: s.ID, Exit: drover.Exit{Code: 3}, Proof: s.Proof}})
				lines.Write(wire.Message{Exited: &wire.Exited{ID: s.ID, Exit: drover.Exit{}, Proof: s.Proof}})
			}
		}
		if n > 3000 {
			time.Sleep(time.Millisecond)
		}
	}
}

// hostileBulk answers every request with something that was not requested.
func hostileBulk() {
	in := bufio.NewReader(os.Stdin)
	lines := wire.NewConn(in, os.Stdout)
	for {
		var r wire.Request
		if lines.Read(&r) != nil {
			return
		}
		switch r.Op {
		case wire.GetOutputs:
			lines.Write(wire.Reply{})
			out := wire.ChunkWriter{W: os.Stdout}
			archive := tar.NewWriter(out)
			for _, name := range []string{"../../escaped", "/etc/escaped", "a/../../escaped", "fine"} {
				archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 7, Mode: 0o6777})
				io.WriteString(archive, "hostile")
			}
			archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "../../.."})
			archive.Close()
			out.Close()
			lines.Write(wire.Reply{Size: math.MaxInt64, LeftOut: []string{strings.Repeat("\x1b", 5000)}, Unmatched: append(make([]int, 400_000), -1, math.MaxInt32)})
		default:
			lines.Write(wire.Reply{Size: 1 << 20})
			os.Stdout.Write(make([]byte, 1<<20))
		}
	}
}

// counter counts what is written to it.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// covers D14
func TestAHostileRunnerHarmsOnlyItsOwnUser(t *testing.T) {
	f := newFixture(t)
	if err := os.WriteFile(filepath.Join(f.logs, "..", "..", hostileFile), []byte("-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.cfg.Setup.Settings.Clouds[0].MaxInstances = 2
	f.cfg.Setup.Settings.Lifecycle.Sharing = drover.ShareUser
	var logged counter
	f.cfg.Log = slog.New(slog.NewTextHandler(&logged, nil))
	c, stop := f.begin()
	submit := func(user string, n int, command string) {
		batch := drover.Batch{Name: user, User: user, Jobs: []drover.JobSpec{{
			Name: user, Array: drover.Array{Last: n - 1, Set: true}, Command: []string{"sh", "-c", command}, Priority: 1, Attempts: 3, Spot: drover.SpotPrefer,
			Resources: drover.Resources{CPU: 500, Memory: 32 * drover.MiB, Disk: drover.MiB}, Outputs: []string{"*"},
		}}}
		must(c.Submit(t.Context(), drover.Submission{Batch: batch}))(t)
	}
	submit("bob", 2, "true") // bob's instance is the first
	f.until(c, "bob's runner has an attempt to forge with", func(e *engine.Engine) bool { return len(e.Attempts()) > 0 })
	submit("ada", 20, "sleep 0.05; echo honest; echo honest >made")
	var most uint64
	var watch sync.WaitGroup
	over := make(chan struct{})
	watch.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				most = max(most, mem.HeapAlloc)
			}
		}
	})
	ofAda := drover.JobFilter{User: "ada", Limit: 50}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !slices.ContainsFunc(must(c.Jobs(t.Context(), ofAda))(t).Items, func(j drover.Job) bool { return !j.State.Final() }) {
			break
		}
	}
	close(over)
	watch.Wait()
	for _, j := range must(c.Jobs(t.Context(), ofAda))(t).Items {
		if j.State != drover.JobSucceeded {
			t.Errorf("ada's job %v is %s: %+v", j.ID, j.State, j.Reason)
		}
	}
	logs := must(filepath.Glob(filepath.Join(f.logs, "..", "*", "logs", "ada*.out")))(t)
	logs = append(logs, must(filepath.Glob(filepath.Join(f.logs, "ada*.out")))(t)...)
	for _, log := range logs {
		if text := string(must(os.ReadFile(log))(t)); text != "honest\n" {
			t.Errorf("%s holds %.40q", log, text)
		}
	}
	if len(logs) != 20 {
		t.Errorf("ada has %d logs", len(logs))
	}
	if most > 512<<20 {
		t.Errorf("the controller took %d MiB", most>>20)
	}
	for _, escaped := range []string{"/etc/escaped", filepath.Join(f.logs, "..", "..", "escaped"), filepath.Join(f.logs, "..", "escaped")} {
		if _, err := os.Lstat(escaped); err == nil {
			t.Errorf("%s was written", escaped)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := logged.Load(); n > 256<<10 {
		t.Errorf("the log has %d bytes", n)
	}
	c, stop = f.begin() // everything that was committed can be read
	f.until(c, "the next controller answers", func(e *engine.Engine) bool { return true })
	if err := stop(); err != nil {
		t.Error(err)
	}
	fmt.Fprintf(t.Output(), "the controller took %d MiB at most\n", most>>20)
}
