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

// marker is the environment variable by which every process of an attempt can be known. A process that cannot be found
// through its parents any more, because its supervisor was killed, is found by it; only one that has cleared its
// environment escapes.
const marker = "DROVER_ATTEMPT_DIR"

// payload is an attempt's command while it runs.
type payload interface {
	// ended is closed when the main process has ended and can be told of; what it left behind may still run.
	ended() <-chan struct{}
	// signal sends a signal to what was started.
	signal(sig unix.Signal) error
	// reapOrphans takes the dead among the descendants off the process table.
	reapOrphans()
	// finish ends and clears away what is left, and says how the main process ended. It is called once, after ended.
	finish() drover.Exit
	// String names it, for the log.
	String() string
}

// command is a process that leads a session and a group of its own, and all its descendants. It lives in a subreaper,
// to which descendants fall that lost their parent.
type command struct {
	pid    int
	group  *cgroup.Group // nil if there is none
	cpu    time.Duration // of the processes reaped so far
	maxRSS drover.Bytes
}

// startCommand executes the order's command straight on the instance, with its output going straight to the files.
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

// makeGroup makes the control group that limits the order's command; nil if there can be none: it then runs without
// limits.
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

// openStreams opens what become descriptors 0, 1 and 2. Output is appended, so that a command which opens its own
// /dev/stdout again overwrites nothing.
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

// markers are the variables that only the supervisor knows.
func (o order) markers() map[string]string {
	return map[string]string{"PWD": o.Folder.work(), "DROVER_NOTICE_FILE": o.Folder.notice(), marker: string(o.Folder)}
}

// environment is the runner's own, overlaid with the order's and with what only the supervisor knows.
func environment(o order) map[string]string {
	env := unpair(os.Environ())
	maps.Copy(env, o.Env)
	maps.Copy(env, o.markers())
	if o.Place.UID != 0 {
		maps.Copy(env, apartEnv())
	}
	return env
}

// unpair is an environment by name, and pairs undoes it.
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

// lookUp finds a command as a shell would, but never in the working folder unless it is named by a path.
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

// startCode is the exit code by which shells say why a command could not be started.
func startCode(err error) int {
	var known *failure
	if errors.As(err, &known) {
		return known.code
	}
	if errors.Is(err, errNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return noStartCode
}

// failure is why a command could not be started, with the exit code that says so.
type failure struct {
	code int
	error
}

func (f *failure) Unwrap() error { return f.error }

func (c *command) String() string { return "process group " + strconv.Itoa(c.pid) }

// ended is closed when the main process has ended; it stays a zombie.
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

// finish clears away what the command left behind and says how it ended.
func (c *command) finish() drover.Exit {
	var status unix.WaitStatus
	// The zombie is in the group, so there is always one to signal; that nothing else is there is no error.
	c.signal(unix.SIGKILL)
	c.reap(c.pid, &status)
	left := c.killRest(clearPatience)
	e := drover.Exit{Code: status.ExitStatus(), CPU: c.cpu, MaxRSS: c.maxRSS}
	if status.Signaled() {
		e.Code, e.Signal = 128+int(status.Signal()), status.Signal().String()
	}
	if left > 0 {
		e.Text = fmt.Sprintf("it left behind processes that could not be killed: %d", left)
	}
	if c.group != nil {
		c.leaveGroup(&e)
	}
	return e
}

// leaveGroup removes the command's control group, after it has told whether the command wanted more memory than it had.
// A command that succeeded had enough, whatever became of its children.
func (c *command) leaveGroup(e *drover.Exit) {
	n, err := c.group.OutOfMemory()
	if n > 0 && e.Code != 0 {
		e.Cause = drover.CauseMemory
	}
	if err = errors.Join(err, c.group.Remove(clearPatience)); err != nil {
		e.Text = strings.TrimPrefix(e.Text+"; "+oneLine(err), "; ")
	}
}

// killRest kills and reaps what is left of the descendants, for at most the given time, and returns how many are left.
func (c *command) killRest(patience time.Duration) (left int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	return left
}

// awaitRest reaps the descendants as they end by themselves, for at most the given time.
func (c *command) awaitRest(patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range backoff.Tries(ctx, time.Millisecond, 100*time.Millisecond) {
		if !c.reapAll() {
			return
		}
	}
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

// reap takes a dead child off the process table and adds up what it used.
func (c *command) reap(pid int, status *unix.WaitStatus) (int, error) {
	var usage unix.Rusage
	pid, err := unix.Wait4(pid, status, unix.WNOHANG, &usage)
	if err == nil && pid > 0 {
		c.cpu += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		c.maxRSS = max(c.maxRSS, drover.Bytes(usage.Maxrss)*drover.KiB)
	}
	return pid, err
}

// children lists this process's children, dead ones included. It may miss some while others end, so callers ask again.
func children() (pids []int) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil
	}
	for _, list := range lists {
		// A thread that has ended meanwhile has left its children to another.
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
