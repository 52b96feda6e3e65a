package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/driver/external"
	"drover/driver/local"
	"drover/internal/daemon"
	"drover/internal/kubetest"
)

// Many tests of this package run the program: real processes, real SSH, real kill -9. The program is this test binary
// with the drivers that need no cloud; make e2e and make chaos run the released binary. Some jobs also run the test
// binary, under the names in programs.

// binaries is the folder of the binary under test, with a runner as in a release, and of the programs that jobs run.
var binaries string

// programs are the test binary's roles, by the names under which it plays them.
var programs = map[string]func(args []string) error{
	"ask":            ask,
	"chaos-driver":   relay,
	"chaos-instance": instance,
	"checkpoint":     checkpoint,
	"kubelet":        kubetest.Kubelet,
	"page":           page,
	"witness":        witness,
}

func TestMain(m *testing.M) {
	if code, is := runRole(os.Args, os.Stdin, os.Stdout, os.Stderr); is {
		os.Exit(code)
	}
	name := filepath.Base(os.Args[0])
	if name == "drover" {
		os.Exit(Main(underTest()))
	}
	if program, ok := programs[name]; ok {
		if err := program(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup, child processes would otherwise ignore it too
	os.Exit(buildAndRun(m))
}

// underTest is the program that the test binary runs as drover, with the runner next to it.
func underTest() daemon.Program {
	p := daemon.Program{Version: "development", Drivers: map[string]daemon.Kind{
		"external": {Open: external.Open, Keys: external.Config{}},
		"local":    {Open: local.Open, Keys: local.Config{}, Here: true},
	}}
	if self, err := exec.LookPath(os.Args[0]); err == nil {
		p.Runners = os.DirFS(filepath.Dir(self))
	}
	return p
}

func buildAndRun(m *testing.M) int {
	var err error
	if binaries, err = os.MkdirTemp("", "drover-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(binaries)
	if err := build(binaries); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// build puts the program and the jobs' programs into a folder.
func build(folder string) error {
	if err := buildProgram(folder); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name := range programs {
		if err := os.Symlink(self, filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

func goBuild(environment []string, file string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build", "-ldflags", "-s -w", "-o", file}, args...)...)
	cmd.Env = append(os.Environ(), environment...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", file, err, out)
	}
	return nil
}

// compress compresses a program into NAME.gz.
func compress(name string) (packed string, err error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(content) // writing to a Buffer never fails
	z.Close()
	packed = name + ".gz"
	return packed, os.WriteFile(packed, b.Bytes(), 0o600)
}

// searchPath returns a PATH with the binaries first.
func searchPath() string { return binaries + ":" + os.Getenv("PATH") }

// place is a working folder and a home for runs' state, both for one test.
type place struct {
	t     *testing.T
	dir   string
	state string
}

// newPlace makes a place. When the test ends, no process and no state of a run may be left there.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t, t.TempDir(), t.TempDir()}
	t.Cleanup(func() {
		if err := nothingLeft(p.state); err != nil {
			t.Error(err)
		}
		for _, pid := range processesOf(p.state) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p
}

// write writes a file into the working folder.
func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// process is a process of the binary under test.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err safeBuffer
	ended    chan struct{}
}

// start starts the binary. The test's cleanup kills the process, and logs its output if the test has failed.
func (p *place) start(args ...string) *process {
	p.t.Helper()
	return p.startTo(nil, args...)
}

// environ returns the binary's environment in the place.
func (p *place) environ() []string {
	return append(os.Environ(), "PATH="+searchPath(), "XDG_STATE_HOME="+p.state)
}

// startTo starts the binary with another writer as its standard output.
func (p *place) startTo(out io.Writer, args ...string) *process {
	p.t.Helper()
	r := &process{t: p.t, cmd: exec.Command(filepath.Join(binaries, "drover"), args...), ended: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env = p.dir, p.environ()
	r.cmd.Stdout, r.cmd.Stderr = out, &r.err
	if out == nil {
		r.cmd.Stdout = &r.out
	}
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		r.cmd.Wait()
		close(r.ended)
	}()
	p.t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.ended
		if p.t.Failed() {
			p.t.Logf("drover %s\n%v\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), r.cmd.ProcessState, r.out.tail(), r.err.tail())
		}
	})
	return r
}

// run runs the binary until it ends.
func (p *place) run(args ...string) *process {
	p.t.Helper()
	r := p.start(args...)
	r.wait(time.Minute)
	return r
}

// wait waits for the process and returns its exit code, -1 if a signal ended it. The limit is for an idle host.
func (r *process) wait(limit time.Duration) int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit * busy):
		r.t.Fatalf("still running after %v", limit*busy)
	}
	return r.code()
}

// code returns the exit code of a finished process.
func (r *process) code() int { return r.cmd.ProcessState.ExitCode() }

func (r *process) signal(sig os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// kill kills the process and waits for its end.
func (r *process) kill() {
	r.cmd.Process.Kill()
	<-r.ended
}

// safeBuffer is a buffer that a process writes while a test reads it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// tail returns the end of the output, for people.
func (s *safeBuffer) tail() string {
	text := s.String()
	return text[max(0, len(text)-8<<10):]
}

// busy is the factor by which a wait may exceed its limit on a busy host, such as two processors with a load of ten.
const busy = 4

// eventually polls until a condition holds. The limit is for an idle host.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(limit * busy); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not true: %s", limit*busy, what)
		}
	}
}
