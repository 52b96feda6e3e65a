//go:build containers

package runner_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover"
	"drover/internal/wire"
)

// TestContainers runs one suite under docker and under podman, each with its own store, against a local registry.
// covers D13
func TestContainers(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *registry) *host{"docker": beginDocker, "podman": beginPodman} {
		t.Run(name, func(t *testing.T) {
			need(t, name, "docker-registry", "busybox")
			h := begin(t, beginRegistry(t))
			h.publish(t)
			h.suite(t)
		})
	}
}

// ranIn runs a script in an image to its end and returns the exit.
func (c *controller) ranIn(image string, id drover.AttemptID, script string) drover.Exit {
	c.t.Helper()
	c.start(sh(id, script).in(image))
	return c.exited(id)
}

func isExited(m wire.Message) bool { return m.Exited != nil }

// nothingRuns checks that no process of the attempt is left, on the instance or in a container.
func (i *instance) nothingRuns(id drover.AttemptID) {
	i.t.Helper()
	mark := []byte("DROVER_ATTEMPT_DIR=" + i.attemptPath(id, "") + "\x00")
	lists, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range lists {
		if environ, _ := os.ReadFile(path); bytes.Contains(environ, mark) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			i.t.Errorf("%q still runs", line)
		}
	}
}

// isClient recognizes the client process that stays with a container.
func isClient(name string) func(int) bool {
	return func(pid int) bool {
		line, _ := os.ReadFile(procPath(pid, "cmdline"))
		return strings.HasPrefix(string(line), name+"\x00start\x00--attach")
	}
}

// containers returns the names of an attempt's containers.
func (h *host) containers(t testing.TB, id drover.AttemptID) []string {
	return strings.Fields(h.run(t, "ps", "--all", "--filter", "label=drover.attempt="+id.String(), "--format", "{{.Names}}"))
}

// suite tests what holds under every runtime.
func (h *host) suite(t *testing.T) {
	plain := h.image("plain:1")
	id := attempt(1, 1)
	t.Run("an exit has the command's output, exit code and resource use", func(t *testing.T) {
		c := newInstance(t).connect()
		c.start(sh(id, "echo out; echo err >&2; exit 7").in(plain))
		c.started(id)
		if e := c.exited(id); e.Code != 7 || e.Cause != "" || e.Stdout != "out\n" || e.Stderr != "err\n" || e.MaxRSS == 0 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("an isolated attempt runs as its own user and reaches neither the runtime nor another attempt's folder", func(t *testing.T) {
		i := newInstance(t)
		c := i.connectApart()
		other := apart(attempt(2, 1), "echo s3cret >secret; "+gate)
		c.start(other.in(plain))
		c.started(other.ID)
		s := apart(id, fmt.Sprintf("id -u; pwd; echo made >made; ls /var/run/docker.sock /run/docker.sock /run/podman %s 2>/dev/null | wc -l; ls /proc | grep -c '^[0-9]'; kill -9 -1; echo done",
			i.attemptPath(other.ID, "work")))
		s.Limits = drover.Resources{}
		c.start(s.in(plain))
		e := c.exited(id)
		said := strings.Fields(e.Stdout)
		if len(said) < 5 || said[0] == "0" || said[1] != i.attemptPath(id, "work") || said[2] != "0" || said[len(said)-1] != "done" {
			t.Errorf("got %+v", e)
		}
		info, err := os.Stat(i.attemptPath(id, "work/made"))
		if err != nil || fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid) != said[0] {
			t.Errorf("its user does not own the file that it made: %+v, %v", info, err)
		}
		i.openGate(other.ID)
		if e := c.exited(other.ID); e.Code != 5 {
			t.Errorf("the other attempt's exit is %+v", e)
		}
	})
	t.Run("a command runs in its image, not on the instance", func(t *testing.T) {
		if e := newInstance(t).connect().ranIn(plain, id, "test ! -e /usr"); e.Code != 0 {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("inputs and outputs are in the attempt's working folder, and the login user owns the outputs", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		in := file("in/put", "from outside\n", 0o644)
		if r := i.bulk().put(in.Hash, "from outside\n"); r.Error != "" {
			t.Fatal(r.Error)
		}
		c.start(sh(id, `cat in/put && mkdir out && echo result > out/file && pwd`).in(plain).withFiles(in))
		if e := c.exited(id); e.Stdout != "from outside\n"+i.attemptPath(id, "work")+"\n" {
			t.Errorf("got %+v", e)
		}
		info, err := os.Stat(i.attemptPath(id, "work/out/file"))
		if err != nil {
			t.Fatal(err)
		}
		if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Getuid() {
			t.Errorf("the output belongs to user %d", owner)
		}
	})
	t.Run("a command gets its variables, whatever their values, and reaches DROVER_API", func(t *testing.T) {
		t.Setenv("OF_THE_INSTANCE", "x")
		i := newInstance(t)
		c := i.connect()
		s := sh(id, `env; addr=${DROVER_API#http://}; nc ${addr%:*} ${addr#*:} </dev/null & while [ ! -e go ]; do sleep 0.02; done; test -e $DROVER_NOTICE_FILE`).in(plain)
		s.Env = map[string]string{"HOME": "/tmp", "PATH": "/bin", "DOCKER_HOST": "unix:///nowhere", "TWO": "one\ntwo", "QUOTED": `"a' $b`,
			"EMPTY": "", "HASH": "#x = y", "LONG": strings.Repeat("x", 100_000)}
		c.start(s)
		c.want("API", func(m wire.Message) bool { return m.API != nil })
		i.openGate(id)
		e := c.exited(id)
		text := i.bulk().log(id, "stdout", 0)
		for key, value := range s.Env {
			if !strings.Contains(text, key+"="+value+"\n") {
				t.Errorf("%s is not %.50q; its stderr says %q", key, value, e.Stderr)
			}
		}
		if strings.Contains(text, "OF_THE_INSTANCE") || !strings.Contains(text, testDir) {
			t.Error("of the instance's environment, the command must get Drover's variables and no others")
		}
	})
	t.Run("a command in a container can read the notice", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `echo ready; while [ ! -e $DROVER_NOTICE_FILE ]; do sleep 0.01; done; cat $DROVER_NOTICE_FILE`).in(plain))
		i.awaitLine(id, "ready")
		writeFile(t, i.attemptPath(id, "told/notice"), "soon\n")
		if e := c.exited(id); e.Stdout != "ready\nsoon\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("secrets appear in no argument list and no file of the runner", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		const secret = "b5d2ce0e-not-for-others"
		c.start(sh(id, `test -n "$DROVER_TOKEN" && echo ready; sleep 1000`).in(plain).withEnv("DROVER_TOKEN", secret))
		i.awaitLine(id, "ready")
		lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range lists {
			if line, _ := os.ReadFile(path); bytes.Contains(line, []byte(secret)) {
				t.Errorf("%s shows the secret: %q", path, line)
			}
		}
		filepath.WalkDir(i.dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if text, _ := os.ReadFile(path); bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s contains the secret", path)
				}
			}
			return nil
		})
		c.stop(id, 0)
		c.exited(id)
	})
	t.Run("an image's command runs only if the job has none", func(t *testing.T) {
		c := newInstance(t).connect()
		c.start(start{ID: id, Image: h.image("greeter:1"), Grace: time.Second})
		if e := c.exited(id); e.Stdout != "hello there\n" {
			t.Errorf("got %+v", e)
		}
		if e := c.ranIn(h.image("wrapped:1"), attempt(2, 1), "echo mine"); e.Stdout != "mine\n" {
			t.Errorf("got %+v", e)
		}
		c.start(start{ID: attempt(3, 1), Image: plain, Grace: time.Second})
		if e := c.exited(attempt(3, 1)); e.Cause != drover.CauseImage || !strings.Contains(e.Text, "has a command") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("distinguishes a missing command from a failing runtime", func(t *testing.T) {
		c := newInstance(t).connect()
		c.start(start{ID: id, Command: []string{"nothing-like-it"}, Image: plain, Grace: time.Second})
		if e := c.exited(id); e.Code != 127 || e.Cause != drover.CauseNoStart || !strings.Contains(e.Text, "nothing-like-it") {
			t.Errorf("got %+v", e)
		}
		for n, code := range []int{125, 126, 127} {
			if e := c.ranIn(plain, attempt(int64(n+2), 1), "exit "+strconv.Itoa(code)); e.Code != code || e.Cause != "" {
				t.Errorf("exit %d: got %+v", code, e)
			}
		}
	})
	t.Run("a command that forges its first process's report can claim only what it could have caused", func(t *testing.T) {
		const forged = `echo '{"exit": {"code": 70000, "cause": "interrupted", "signal": "x"}}' > $DROVER_ATTEMPT_DIR/told/pipe; sleep 0.1; exit 3`
		if e := newInstance(t).connect().ranIn(plain, id, forged); e.Cause == drover.CauseInterrupted || e.Code == 0 || e.Code > 255 {
			t.Errorf("got %+v", e)
		}
	})
	h.testConfinement(t, plain)
	h.testStops(t, plain)
	h.testLimits(t, plain)
	h.testPulls(t)
	h.testDeaths(t, plain)
}

// testConfinement tests what a command in a container can reach on the instance.
func (h *host) testConfinement(t *testing.T, plain string) {
	id := attempt(1, 1)
	t.Run("a command cannot have the instance's files sent by linking its working folder or output to them", func(t *testing.T) {
		secret := filepath.Join(t.TempDir(), "out")
		if err := os.Mkdir(secret, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, secret+"/secret", "not for jobs\n")
		i := newInstance(t)
		c := i.connect()
		s := sh(id, `cd ..; mv work elsewhere; ln -s $SECRET work; rm -f stdout stderr; ln -s $SECRET/secret stdout; ln -s $SECRET/secret stderr; exit 0`).in(plain)
		s.Outputs = []string{"**"}
		c.start(s.withEnv("SECRET", secret))
		if e := c.exited(id); strings.Contains(e.Stdout+e.Stderr, "not for jobs") {
			t.Errorf("its output ends with the secret: %+v", e)
		}
		if text := i.bulk().log(id, "stdout", 0); strings.Contains(text, "not for jobs") {
			t.Errorf("its output contains the secret: %q", text)
		}
		if _, err := os.Stat(i.attemptPath(id, "work/secret")); err == nil {
			t.Error("its working folder was replaced")
		}
	})
	t.Run("in its attempt's folder, a command can write only to its working folder", func(t *testing.T) {
		i := newInstance(t)
		script := `cd ..; for f in journal stdout notice.new told/notice.new; do echo forged 2>/dev/null >> $f && echo wrote $f; done; exit 0`
		i.connect().ranIn(plain, id, script)
		filepath.WalkDir(i.attemptPath(id, ""), func(path string, d os.DirEntry, err error) error {
			if !d.Type().IsRegular() {
				return err
			}
			if text, _ := os.ReadFile(path); strings.Contains(string(text), "forged") {
				t.Errorf("it wrote %s", path)
			}
			return nil
		})
	})
	t.Run("no program gains another user's rights, since that user's files could not be removed", func(t *testing.T) {
		if e := newInstance(t).connect().ranIn(plain, id, `grep NoNewPrivs /proc/self/status`); !strings.HasSuffix(e.Stdout, "\t1\n") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a job's variables do not affect the runtime's client, whatever their values", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		s := sh(id, `echo "$DOCKER_CONFIG|$CONTAINERS_CONF|$LD_PRELOAD"`).in(plain)
		s.Env = map[string]string{"DOCKER_HOST": "'unix:///nowhere", "DOCKER_CONFIG": "'nowhere", "CONTAINERS_CONF": "'nowhere", "LD_PRELOAD": "'x:/nowhere.so", "PATH": "'x:/bin"}
		c.start(s)
		if e := c.exited(id); e.Stdout != "'nowhere|'nowhere|'x:/nowhere.so\n" {
			t.Errorf("got %+v", e)
		}
	})
}

// testStops tests how containers are stopped.
func (h *host) testStops(t *testing.T, plain string) {
	id := attempt(1, 1)
	t.Run("a stopped command gets SIGTERM, even a shell without a trap", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `echo ready; sleep 1000; echo never`).in(plain))
		i.awaitLine(id, "ready")
		c.stop(id, time.Minute)
		if e := c.exited(id); e.Code != 143 || e.Signal != "terminated" || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a stopped command may choose its exit code", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done`).in(plain))
		i.awaitLine(id, "ready")
		c.stop(id, time.Minute)
		if e := c.exited(id); e.Code != 7 || e.Cause != drover.CauseStopped || e.Stdout != "ready\nbye\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a command that ignores SIGTERM is killed after the grace, with everything that it started", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, `trap '' TERM; setsid sleep 999 & echo ready; while :; do sleep 0.02; done`).in(plain))
		i.awaitLine(id, "ready")
		c.stop(id, 300*time.Millisecond)
		if e := c.exited(id); e.Code != 137 || e.Signal != "killed" || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
		i.nothingRuns(id)
	})
	t.Run("a command that exceeds its timeout is ended", func(t *testing.T) {
		c := newInstance(t).connect()
		s := sh(id, "sleep 1000").in(plain)
		s.Timeout = 500 * time.Millisecond
		c.start(s)
		if e := c.exited(id); e.Code != 143 || e.Cause != drover.CauseTimeout || !strings.Contains(e.Text, "500ms") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("the processes that a command leaves behind end with it", func(t *testing.T) {
		i := newInstance(t)
		if e := i.connect().ranIn(plain, id, `setsid sleep 1000 </dev/null >/dev/null 2>&1 & exit 0`); e.Code != 0 {
			t.Errorf("got %+v", e)
		}
		i.nothingRuns(id)
	})
	t.Run("a container is named after its attempt and removed when it ends", func(t *testing.T) {
		i, id := newInstance(t), attempt(77, 1) // an id that no other test uses
		c := i.connect()
		c.start(sh(id, gate).in(plain))
		i.awaitLine(id, "ready")
		if names := h.containers(t, id); len(names) != 1 || !strings.HasPrefix(names[0], "drover-lab-lab-1-77-1-") {
			t.Errorf("got %q", names)
		}
		i.openGate(id)
		c.exited(id)
		if names := h.containers(t, id); len(names) > 0 {
			t.Errorf("containers %q are still there", names)
		}
	})
}

// testLimits tests what a container may use.
func (h *host) testLimits(t *testing.T, plain string) {
	id := attempt(1, 1)
	t.Run("CPU and memory are limited", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		s := sh(id, `cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null; exit 0`).in(plain)
		s.Limits = drover.Resources{CPU: 500, Memory: 64 * drover.MiB}
		c.start(s)
		if e := c.exited(id); !strings.Contains(e.Stdout, "67108864\n") || !strings.Contains(e.Stdout, "50000") {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a limit above the instance's CPUs is no failure", func(t *testing.T) {
		c := newInstance(t).connect()
		s := sh(id, "true").in(plain)
		s.Limits = drover.Resources{CPU: 1_000_000}
		c.start(s)
		if e := c.exited(id); e.Code != 0 {
			t.Errorf("got %+v", e)
		}
	})
	for name, script := range map[string]string{
		"a command that exceeds its memory is reported as out of memory": `exec tail -c 200000000 /dev/zero`,
		"so is a command that fails because its child did":               `tail -c 200000000 /dev/zero || exit 3`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newInstance(t).connect()
			s := sh(id, script).in(plain)
			s.Limits = drover.Resources{Memory: 64 * drover.MiB}
			c.start(s)
			if e := c.exited(id); e.Code == 0 || e.Cause != drover.CauseMemory || !strings.Contains(e.Text, "64Mi") {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("a command that kills itself is not reported as out of memory", func(t *testing.T) {
		if e := newInstance(t).connect().ranIn(plain, id, "kill -9 $$"); e.Code != 137 || e.Cause != "" {
			t.Errorf("got %+v", e)
		}
	})
}

// testPulls tests how images are fetched.
func (h *host) testPulls(t *testing.T) {
	for name, c := range map[string]struct{ image, cause, text string }{
		"an image that does not exist":      {h.image("plain:none"), drover.CauseImage, "does not exist"},
		"a repository that does not exist":  {h.image("nothing/here:1"), drover.CauseImage, "does not exist"},
		"an image that is not accessible":   {h.image("private/thing:1"), drover.CauseImage, "is not accessible"},
		"a registry that fails":             {h.image("broken/thing:1"), drover.CauseNoImage, "could not be fetched"},
		"a registry that cannot be reached": {"127.0.0.1:1/thing:1", drover.CauseNoImage, "could not be fetched"},
		"a registry whose name is unknown":  {"registry.invalid/thing:1", drover.CauseNoImage, "could not be fetched"},
	} {
		t.Run(name+" is reported as such", func(t *testing.T) {
			if e := newInstance(t).connect().ranIn(c.image, attempt(1, 1), "true"); e.Cause != c.cause || e.Code != 125 || !strings.Contains(e.Text, c.text) || !strings.Contains(e.Text, c.image) {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("concurrent attempts share one pull of an image, and later ones need none", func(t *testing.T) {
		h.forget(t, "plain:1")
		h.registry.blobs.Store(0)
		open := h.registry.close()
		defer open()
		c := newInstance(t).connect()
		for n := range int64(5) {
			c.start(sh(attempt(n+1, 1), "true").in(h.image("plain:1")))
		}
		until(t, "the image is being fetched", func() bool { return h.registry.blobs.Load() > 0 })
		open()
		for range 5 {
			c.want("an end", isExited)
		}
		first := h.registry.blobs.Load()
		c.ranIn(h.image("plain:1"), attempt(9, 1), "true")
		if again := h.registry.blobs.Load(); first > 2 || again != first { // a configuration and a layer
			t.Errorf("five attempts at once fetched %d blobs, a later one %d", first, again-first)
		}
	})
	t.Run("an attempt stopped during a pull never begins, and the pull continues for others", func(t *testing.T) {
		h.forget(t, "plain:1")
		h.registry.blobs.Store(0)
		open := h.registry.close()
		defer open()
		c := newInstance(t).connect()
		for n := range int64(2) {
			c.start(sh(attempt(n+1, 1), "echo ran").in(h.image("plain:1")))
		}
		until(t, "the image is being fetched", func() bool { return h.registry.blobs.Load() > 0 })
		c.stop(attempt(1, 1), time.Hour)
		if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseStopped || e.Stdout != "" {
			t.Errorf("got %+v", e)
		}
		open()
		if e := c.exited(attempt(2, 1)); e.Stdout != "ran\n" {
			t.Errorf("got %+v", e)
		}
	})
}

// testDeaths kills the runner's own processes.
func (h *host) testDeaths(t *testing.T, plain string) {
	id := attempt(1, 1)
	t.Run("a container outlives the daemon, and the next daemon reports its exit", func(t *testing.T) {
		i, id := newInstance(t), attempt(78, 1)
		c := i.connect()
		c.start(sh(id, gate).in(plain))
		i.awaitLine(id, "ready")
		i.kill(i.daemon())
		c.hungUp()
		c = i.connect()
		i.openGate(id)
		if e := c.exited(id); e.Code != 5 || e.Stdout != "ready\ngone on\n" {
			t.Errorf("got %+v", e)
		}
		if names := h.containers(t, id); len(names) > 0 {
			t.Errorf("containers %q are still there", names)
		}
	})
	t.Run("an unknown container is removed once the next daemon uses the runtime", func(t *testing.T) {
		i, id := newInstance(t), attempt(80, 1)
		c := i.connect()
		c.start(sh(id, "echo ready; sleep 1000").in(plain))
		i.awaitLine(id, "ready")
		i.kill(i.daemon())
		i.kill(i.supervisor(id))
		if err := os.RemoveAll(i.attemptPath(id, "")); err != nil {
			t.Fatal(err)
		}
		i.connect().ranIn(plain, attempt(81, 1), "true")
		until(t, "the container is gone", func() bool { return len(h.containers(t, id)) == 0 })
	})
	t.Run("an adopted container can be stopped", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, "echo ready; sleep 1000").in(plain))
		i.awaitLine(id, "ready")
		i.kill(i.daemon())
		c = i.connect()
		c.stop(id, time.Minute)
		if e := c.exited(id); e.Code != 143 || e.Cause != drover.CauseStopped {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("after its supervisor is killed, a container is ended before its attempt is reported lost", func(t *testing.T) {
		i, id := newInstance(t), attempt(79, 1)
		c := i.connect()
		c.start(sh(id, "echo ready; while :; do echo x >> alive; sleep 0.02; done").in(plain))
		i.awaitLine(id, "ready")
		i.kill(i.supervisor(id))
		if e := c.exited(id); e.Cause != drover.CauseLost {
			t.Errorf("got %+v", e)
		}
		i.nothingRuns(id)
		if names := h.containers(t, id); len(names) > 0 {
			t.Errorf("containers %q are still there", names)
		}
	})
	t.Run("killing the client that carries its output ends a container, and the attempt is lost", func(t *testing.T) {
		i := newInstance(t)
		c := i.connect()
		c.start(sh(id, "echo ready; sleep 1000").in(plain))
		i.awaitLine(id, "ready")
		for _, pid := range i.processes(isClient(h.client)) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if e := c.exited(id); e.Cause != drover.CauseLost {
			t.Errorf("got %+v", e)
		}
		i.nothingRuns(id)
	})
	t.Run("many containers run at once", func(t *testing.T) {
		c := newInstance(t).connect()
		const many = 12
		for n := range int64(many) {
			c.start(sh(attempt(n+1, 1), fmt.Sprintf("echo %d; exit %d", n, n)).in(plain))
		}
		for range many {
			e := c.want("an end", isExited).Exited
			if want := int(e.ID.Job.Number - 1); e.Exit.Code != want || e.Exit.Stdout != fmt.Sprintln(want) {
				t.Errorf("%v: got %+v", e.ID, e.Exit)
			}
		}
	})
}
