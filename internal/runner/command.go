package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/backoff"
	"drover/internal/cgroup"
)

// marker is the environment variable that identifies every process of an attempt. If the supervisor was killed,
// processes can no longer be found through their parents, only by the marker; a process that has cleared its
// environment escapes.
const marker = "DROVER_ATTEMPT_DIR"

// payload is an attempt's command while it runs.
type payload interface {
	// ended returns a channel that is closed when the main process has ended. Other processes may still run.
	ended() <-chan struct{}
	// signal sends a signal to what was started.
	signal(sig unix.Signal) error
	// reapOrphans reaps dead descendants.
	reapOrphans()
	// finish kills and reaps what is left, and returns how the main process ended. It is called once, after ended.
	finish() drover.Exit
	// String names it, for the log.
	String() string
}

// command is a process that leads its own session and process group, with all its descendants. This process is a
// subreaper, so descendants that lose their parent become its children.
type command struct {
	pid    int
	group  *cgroup.Group // nil if there is none
	cpu    time.Duration // of the processes reaped so far
	maxRSS drover.Bytes
}

// startCommand executes the order's command directly on the instance. The command writes its output directly to the
// files.
func startCommand(o order, j journal) (*command, error) {
	env := environment(o)
	path, err := lookUp(o.Command[0], env["PATH"])
	if err != nil {
		return nil, err
	}
	files, err := openStreams(o.Folder)
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	group := o.makeGroup(j)
	c, err := spawn(path, o.Command, attributes{dir: o.Folder.work(), env: pairs(env), files: files, group: group})
	if err != nil && group != nil {
		err = errors.Join(err, group.Remove(clearPatience))
	}
	return c, err
}

// makeGroup makes the control group that limits the order's command. It returns nil if none can be made.
func (o order) makeGroup(j journal) *cgroup.Group {
	if o.Place.Groups == nil {
		return nil
	}
	group := o.Place.Groups.Group(o.Place.Name)
	if err := group.Make(o.Limits); err != nil {
		j.logf("running without limits: %v", err)
		return nil
	}
	return group
}

// openStreams opens the files for descriptors 0, 1 and 2. Output is appended, so that a command that reopens its
// /dev/stdout overwrites nothing.
func openStreams(f folder) ([]*os.File, error) {
	null, errIn := os.Open(os.DevNull)
	out, errOut := os.OpenFile(f.path("stdout"), os.O_APPEND|os.O_WRONLY, 0)
	err, errErr := os.OpenFile(f.path("stderr"), os.O_APPEND|os.O_WRONLY, 0)
	files := []*os.File{null, out, err}
	if err := errors.Join(errIn, errOut, errErr); err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// markers returns the environment variables that come from the supervisor.
func (o order) markers() map[string]string {
	return map[string]string{"PWD": o.Folder.work(), "DROVER_NOTICE_FILE": o.Folder.notice(), marker: string(o.Folder)}
}

// environment returns the command's environment: the runner's own, overlaid with the order's and then the supervisor's.
func environment(o order) map[string]string {
	env := unpair(os.Environ())
	maps.Copy(env, o.Env)
	maps.Copy(env, o.markers())
	if o.Place.UID != 0 {
		maps.Copy(env, apartEnv())
	}
	return env
}

// unpair maps an environment's names to values; pairs is the inverse.
func unpair(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, pair := range list {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	return env
}

func pairs(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for key, value := range env {
		list = append(list, key+"="+value)
	}
	return list
}

// lookUp finds a command as a shell would, but in the working folder only by an explicit path.
func lookUp(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	found := fmt.Errorf("%s: %w in PATH", name, errNotFound)
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if !filepath.IsAbs(dir) || err != nil || info.IsDir() {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		found = fmt.Errorf("%s: %w", file, fs.ErrPermission)
	}
	return "", found
}

var errNotFound = errors.New("command not found")

// startCode returns the exit code that a shell uses for a command that could not be started for this reason.
func startCode(err error) int {
	if known, ok := errors.AsType[*failure](err); ok {
		return known.code
	}
	if errors.Is(err, errNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return noStartCode
}

// failure is why a command could not be started, with its exit code.
type failure struct {
	code int
	error
}

func (f *failure) Unwrap() error { return f.error }

func (c *command) String() string { return "process group " + strconv.Itoa(c.pid) }

// ended returns a channel that is closed when the main process has ended; the process stays a zombie.
func (c *command) ended() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
	}()
	return done
}

// signal sends sig to the command's process group.
func (c *command) signal(sig unix.Signal) error { return unix.Kill(-c.pid, sig) }

// finish kills and reaps what the command left behind, and returns how it ended.
func (c *command) finish() drover.Exit {
	var status unix.WaitStatus
	// The zombie is in the group, so the signal always has a target, even if nothing else is left.
	c.signal(unix.SIGKILL)
	c.reap(c.pid, &status)
	left := c.awaitRest(true)
	e := drover.Exit{Code: status.ExitStatus(), CPU: c.cpu, MaxRSS: c.maxRSS}
	if status.Signaled() {
		e.Code, e.Signal = 128+int(status.Signal()), status.Signal().String()
	}
	if left > 0 {
		e.Text = fmt.Sprintf("%d of its processes could not be killed", left)
	}
	if c.group != nil {
		c.leaveGroup(&e)
	}
	return e
}

// leaveGroup reads from the command's control group whether the command ran out of memory, then removes the group. A
// command that succeeded had enough memory, even if children were killed for it.
func (c *command) leaveGroup(e *drover.Exit) {
	n, err := c.group.OutOfMemory()
	if n > 0 && e.Code != 0 {
		e.Cause = drover.CauseMemory
	}
	if err = errors.Join(err, c.group.Remove(clearPatience)); err != nil {
		e.Text = strings.TrimPrefix(e.Text+"; "+oneLine(err), "; ")
	}
}

// awaitRest reaps the descendants as they end, for at most clearPatience, and returns how many are left. It kills them,
// or lets them end by themselves.
func (c *command) awaitRest(kill bool) (left int) {
	ctx, cancel := context.WithTimeout(context.Background(), clearPatience)
	defer cancel()
	for range backoff.Tries(ctx, time.Millisecond, 100*time.Millisecond) {
		if !c.reapAll() {
			return 0
		}
		children := children()
		if left = len(children); ctx.Err() != nil {
			break
		}
		for _, pid := range children {
			if kill {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
	return left
}

// reapAll reaps every dead child and reports whether there are others.
func (c *command) reapAll() bool {
	for {
		pid, err := c.reap(-1, nil)
		if err != nil {
			return false
		}
		if pid == 0 {
			return true
		}
	}
}

// reapOrphans reaps the dead children, but not the main process, dead or not.
func (c *command) reapOrphans() {
	for _, pid := range children() {
		if pid != c.pid {
			c.reap(pid, nil)
		}
	}
}

// reap reaps a dead child and adds its usage to the command's.
func (c *command) reap(pid int, status *unix.WaitStatus) (int, error) {
	var usage unix.Rusage
	pid, err := unix.Wait4(pid, status, unix.WNOHANG, &usage)
	if err == nil && pid > 0 {
		c.cpu += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		c.maxRSS = max(c.maxRSS, drover.Bytes(usage.Maxrss)*drover.KiB)
	}
	return pid, err
}

// children lists this process's children, including dead ones. It may miss some while others end, so callers repeat it.
func children() (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil
	}
	for _, list := range lists {
		// A thread that has ended since has left its children to another.
		text, err := os.ReadFile(list)
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
