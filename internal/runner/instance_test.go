package runner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/deadman"
	"drover/internal/runner"
	"drover/internal/wire"
)

// patience bounds every wait for real processes.
const patience = time.Minute

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "drover-runner") {
		os.Exit(runner.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// instance stands for a VM: it is a folder. Every process on it has testDir in its environment.
type instance struct {
	t      testing.TB
	dir    string // the runner's folder, which does not exist yet
	binary string
	env    []string // besides this process's
}

const testDir = "DROVER_TEST_DIR"

func newInstance(t testing.TB) *instance {
	i := &instance{t: t, dir: filepath.Join(t.TempDir(), "runner")}
	i.env = []string{testDir + "=" + i.dir, deadman.PowerOffVariable + "=/bin/false"} // so that nothing powers off this host
	i.binary = i.install("drover-runner-one")
	t.Cleanup(i.killAll)
	return i
}

// install puts the runner on the instance under a name.
func (i *instance) install(name string) string {
	i.t.Helper()
	self, err := os.Executable()
	if err != nil {
		i.t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(i.dir), name)
	if os.Link(self, path) != nil {
		content, err := os.ReadFile(self)
		if err != nil {
			i.t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o700); err != nil {
			i.t.Fatal(err)
		}
	}
	return path
}

// processes lists the instance's processes that satisfy the test.
func (i *instance) processes(is func(pid int) bool) (pids []int) {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		i.t.Fatal(err)
	}
	for _, path := range entries {
		environ, _ := os.ReadFile(path) // empty for a process that has ended
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if bytes.Contains(environ, []byte(testDir+"="+i.dir+"\x00")) && is(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (i *instance) killAll() {
	until(i.t, "no process of the test runs", func() bool {
		pids := i.processes(func(int) bool { return true })
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
}

// subcommand reports whether a process is the runner with that subcommand.
func subcommand(name string) func(int) bool {
	return func(pid int) bool {
		line, _ := os.ReadFile(procPath(pid, "cmdline"))
		args := strings.Split(string(line), "\x00")
		return len(args) > 1 && strings.HasPrefix(filepath.Base(args[0]), "drover-runner") && args[1] == name
	}
}

// daemon returns the daemon's pid.
func (i *instance) daemon() int {
	i.t.Helper()
	text, err := os.ReadFile(filepath.Join(i.dir, "daemon.lock"))
	if err != nil {
		i.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !alive(pid) {
		i.t.Fatalf("the daemon %q does not run: %v", text, err)
	}
	return pid
}

func procPath(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// session returns a process's session id.
func session(pid int) int {
	stat, _ := os.ReadFile(procPath(pid, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	id, _ := strconv.Atoi(append(strings.Fields(rest), "", "", "", "")[3])
	return id
}

// peakMemory returns the largest resident set that a process has had.
func peakMemory(pid int) drover.Bytes {
	status, _ := os.ReadFile(procPath(pid, "status"))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.ParseInt(append(strings.Fields(rest), "")[0], 10, 64)
	return drover.Bytes(kib) * drover.KiB
}

// cpu returns the CPU time that the instance's processes and their dead children have used.
func (i *instance) cpu() (sum time.Duration) {
	const tick = 10 * time.Millisecond
	for _, pid := range i.processes(func(int) bool { return true }) {
		stat, _ := os.ReadFile(procPath(pid, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		for n, field := range strings.Fields(rest) {
			if ticks, err := strconv.Atoi(field); err == nil && n >= 11 && n <= 14 {
				sum += time.Duration(ticks) * tick
			}
		}
	}
	return sum
}

// pidIn returns the supervisor's pid from a journal.
func pidIn(journal []byte) int {
	for line := range bytes.Lines(journal) {
		var e struct{ Begun struct{ PID int } }
		if json.Unmarshal(line, &e) == nil && e.Begun.PID > 0 {
			return e.Begun.PID
		}
	}
	return 0
}

func (i *instance) kill(pid int) {
	i.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		i.t.Fatal(err)
	}
	until(i.t, "the process is gone", func() bool { return !alive(pid) })
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// attemptPath returns a path in an attempt's folder.
func (i *instance) attemptPath(id drover.AttemptID, name string) string {
	return filepath.Join(i.dir, "attempts", id.Folder(), name)
}

// until polls until a condition of real processes holds.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// channel is one SSH channel to the instance: a bridge process and its two pipes.
type channel struct {
	*wire.Conn
	t     testing.TB
	write io.WriteCloser
	done  chan error
}

func (i *instance) open(binary, role string, args ...string) *channel {
	i.t.Helper()
	cmd := exec.Command(binary, append([]string{role, "--dir", i.dir}, args...)...)
	cmd.Env = append(os.Environ(), i.env...)
	cmd.Stderr = i.t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		i.t.Fatal(err)
	}
	reader, writer := io.Pipe()
	cmd.Stdout = writer
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	c := &channel{Conn: wire.NewConn(reader, stdin), t: i.t, write: stdin, done: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		writer.Close()
		c.done <- err
	}()
	i.t.Cleanup(func() { stdin.Close(); reader.Close(); <-c.done })
	return c
}

func (i *instance) bulk() *channel { return i.open(i.binary, "bulk") }

// controller is a control stream past its Hello.
type controller struct {
	t     testing.TB
	ch    *channel
	hello wire.Hello
	in    chan wire.Message
	pongs chan wire.Ping // separate, so that ping takes no message that another call waits for
}

var hello = wire.Hello{Version: wire.Version, Epoch: 1, Fleet: "lab", Instance: "lab-1"}

func (i *instance) connect() *controller { return i.connectAs(i.binary, hello) }

func (i *instance) connectAs(binary string, h wire.Hello) *controller {
	i.t.Helper()
	c := &controller{t: i.t, ch: i.open(binary, "control", "--fleet", "lab", "--instance", "lab-1"), in: make(chan wire.Message, 10000), pongs: make(chan wire.Ping, 1)}
	if err := c.ch.Write(wire.Message{Hello: &h}); err != nil {
		i.t.Fatal(err)
	}
	go func() {
		defer close(c.in)
		defer close(c.pongs)
		for {
			var m wire.Message
			if c.ch.Read(&m) != nil {
				return
			}
			if m.Pong != nil {
				c.pongs <- *m.Pong
				continue
			}
			c.in <- m
		}
	}()
	m, ok := c.next()
	if !ok || m.Hello == nil {
		i.t.Fatalf("got %+v in answer to Hello", m)
	}
	c.hello = *m.Hello
	return c
}

// next returns the next message; ok is false once the runner has hung up.
func (c *controller) next() (m wire.Message, ok bool) {
	c.t.Helper()
	select {
	case m, ok = <-c.in:
		return m, ok
	case <-time.After(patience):
		c.t.Fatal("no message came")
		return m, false
	}
}

func (c *controller) send(m wire.Message) {
	c.t.Helper()
	if err := c.ch.Write(m); err != nil {
		c.t.Fatal(err)
	}
}

func (c *controller) start(s start) { c.t.Helper(); c.send(wire.Message{Start: (*wire.Start)(&s)}) }

// hungUp waits for the end of the stream.
func (c *controller) hungUp() {
	c.t.Helper()
	for {
		if _, ok := c.next(); !ok {
			return
		}
	}
}

// want skips messages until one satisfies the test.
func (c *controller) want(what string, is func(wire.Message) bool) wire.Message {
	c.t.Helper()
	for {
		m, ok := c.next()
		if !ok {
			c.t.Fatalf("the runner hung up before %s", what)
		}
		if is(m) {
			return m
		}
	}
}

func (c *controller) started(id drover.AttemptID) {
	c.t.Helper()
	c.want("Started", func(m wire.Message) bool { return m.Started != nil && m.Started.ID == id })
}

func (c *controller) exited(id drover.AttemptID) drover.Exit {
	c.t.Helper()
	return c.want("Exited", func(m wire.Message) bool { return m.Exited != nil && m.Exited.ID == id }).Exited.Exit
}

func (c *controller) refused(id drover.AttemptID) string {
	c.t.Helper()
	return c.want("Refused", func(m wire.Message) bool { return m.Refused != nil && m.Refused.ID == id }).Refused.Text
}

func (c *controller) forget(id drover.AttemptID) {
	c.t.Helper()
	c.send(wire.Message{Forget: &wire.Forget{ID: id}})
	c.ping()
}

// ping waits until the runner has handled all that was sent.
func (c *controller) ping() {
	c.t.Helper()
	c.send(wire.Message{Ping: &wire.Ping{N: 7}})
	select {
	case p, ok := <-c.pongs:
		if !ok || p.N != 7 {
			c.t.Fatalf("the answer to ping is %+v (connected: %v)", p, ok)
		}
	case <-time.After(patience):
		c.t.Fatal("the runner did not answer a ping")
	}
}

// disconnect ends the stream as a dying controller does.
func (c *controller) disconnect() { c.ch.write.Close() }

// attempt returns the id of an attempt of a job that is not an array.
func attempt(job int64, number int) drover.AttemptID {
	return drover.AttemptID{Job: drover.JobID{Number: job, Index: -1}, Number: number}
}

// sh returns the Start of a shell script.
func sh(id drover.AttemptID, script string) start {
	return start{ID: id, Command: []string{"sh", "-c", script}, Grace: time.Second}
}

// start is a Start that tests build in steps.
type start wire.Start

// withEnv adds to the environment.
func (s start) withEnv(key, value string) start {
	s.Env = map[string]string{key: value}
	return s
}

// in makes a Start run in an image.
func (s start) in(image string) start {
	s.Image = image
	return s
}

// withFiles adds inputs.
func (s start) withFiles(files ...drover.File) start {
	s.Files = files
	return s
}

// ran runs a script to its end and returns the exit.
func (c *controller) ran(id drover.AttemptID, script string) drover.Exit {
	c.t.Helper()
	c.start(sh(id, script))
	return c.exited(id)
}
