package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/atomicfile"
	"drover/internal/deadman"
	"drover/internal/wire"
)

// If users share an instance, each attempt is isolated from all others: it runs as its own user, in its own control
// group and in its own namespaces, where it sees only its own processes and has its own /tmp. Only root can enter the
// runner's folder; the attempt's own folders there are bind-mounted under insideFolder.
//
// The namespaces' first process is this program, see initiateApart. When it ends, the kernel kills everything in them.

// Isolated attempts get apartUIDs user ids from firstApartUID on. No system assigns them: "Users, Groups, UIDs and GIDs
// on systemd systems" lists them as unused.
const (
	firstApartUID = 0x70000000
	apartUIDs     = 1 << 16
)

// apartProcesses is how many processes and threads an attempt may have: enough for any job, and too few to leave the
// others without process ids.
const apartProcesses = 8192

// Where an isolated attempt finds its folders.
const (
	insideFolder = "/run/drover"
	insideWork   = insideFolder + "/work"
	insideTold   = insideFolder + "/told"
)

// tmp is the folder that an isolated attempt sees as /tmp.
func (f folder) tmp() string { return f.path("tmp") }

// keepsApart returns why attempts cannot be isolated here; nil if they can.
func (d *daemon) keepsApart() error {
	info, err := os.Stat(d.folder)
	if err != nil {
		return err
	}
	switch {
	case os.Geteuid() != 0:
		return errors.New("the runner is not running as root on this instance")
	case info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm() != 0o700:
		return fmt.Errorf("the runner's folder, %s, is not private to root: attempts have run here without isolation", d.folder)
	case d.groups == nil:
		return errors.New("control groups for memory and cpu cannot be created")
	}
	return errors.Join(deadman.Find().Keep(), d.tryApart())
}

// tryApart tests whether an attempt's namespaces can be made here. After the first success it does not test again.
func (d *daemon) tryApart() error {
	d.apart.Lock()
	defer d.apart.Unlock()
	if d.apart.works {
		return nil
	}
	try := folder(filepath.Join(d.folder, fmt.Sprintf("apart-%d", os.Getpid())))
	defer os.RemoveAll(string(try))
	if err := errors.Join(try.create(), try.openTo(firstApartUID)); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	a, err := spawnApart(firstApartUID, try, nil, attributes{files: []*os.File{null, null, null}})
	if err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	var why report
	failed := a.reports.Read(&why) == nil && why.Exit != nil // it reports nothing if all is well
	<-a.ended()
	switch code := a.finish().Code; {
	case failed:
		return errors.New(why.Exit.Text)
	case code != 0:
		return fmt.Errorf("the first process in the new namespaces exited with %d", code)
	}
	d.apart.works = true
	return nil
}

// takeUIDLocked returns a user id that no attempt here has; an id is reused only after all others. The ids in
// use are in the attempts' journals. The file holds only the last one taken.
func (d *daemon) takeUIDLocked() (int, error) {
	const name = "uid"
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	last, _ := strconv.Atoi(strings.TrimSpace(string(text))) // text that is not a number counts as 0
	used := map[int]bool{}
	for _, a := range d.attempts {
		used[a.sandbox.UID] = true
	}
	next := max(0, last-firstApartUID)
	for range apartUIDs {
		next = (next + 1) % apartUIDs
		if uid := firstApartUID + next; !used[uid] {
			return uid, atomicfile.Write(name, []byte(strconv.Itoa(uid)+"\n"))
		}
	}
	return 0, errors.New("all user ids for attempts are in use")
}

// openTo makes uid the owner of the attempt's own files in the folder.
func (f folder) openTo(uid int) error {
	if err := errors.Join(f.makeTold(), os.Chmod(f.told(), 0o755), os.Mkdir(f.tmp(), 0o700), os.Chown(f.tmp(), uid, uid)); err != nil {
		return err
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if err := os.Chown(f.path(stream), uid, uid); err != nil {
			return err
		}
	}
	return filepath.WalkDir(f.work(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}

// apart is an isolated command. The process that is watched is the first in its namespaces.
type apart struct {
	*command
	reports *wire.Conn
	pipe    io.Closer
}

// spawnApart starts the first process of new namespaces, see initiateApart.
func spawnApart(uid int, f folder, command []string, attr attributes) (*apart, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	attr.apart, attr.files = true, slices.Insert(attr.files, 3, w)
	c, err := spawn(selfPath, append([]string{"drover-runner", "apart", strconv.Itoa(uid), string(f)}, command...), attr)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &apart{command: c, reports: wire.NewConn(r, nil), pipe: r}, nil
}

// startApart executes the order's command in its own namespaces, as its own user.
func startApart(o order, j journal) (*apart, error) {
	group := o.makeGroup(j)
	if group == nil {
		return nil, &failure{runtimeFailed, errors.New("no control group could be created for it")}
	}
	files, err := openStreams(o.Folder)
	if err != nil {
		return nil, err
	}
	defer closeAll(files)
	envR, envW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// The first process is root, and loaders and runtimes obey the environment: it must hold nothing of the job's.
	own := append(ownVariables(), marker+"="+string(o.Folder))
	a, err := spawnApart(o.Place.UID, o.Folder, o.Command, attributes{env: own, files: append(files, envR), group: group})
	envR.Close()
	go func() { // the environment may be longer than a pipe holds, and its reader may be dead
		wire.NewConn(nil, envW).Write(environment(o))
		envW.Close()
	}()
	if err != nil {
		return nil, errors.Join(&failure{runtimeFailed, err}, group.Remove(clearPatience))
	}
	var first report
	if err := a.reports.Read(&first); err == nil && first.Started {
		return a, nil
	}
	<-a.ended()
	a.finish()
	if first.Exit != nil {
		return nil, &failure{first.Exit.Code, errors.New(first.Exit.Text)}
	}
	return nil, &failure{runtimeFailed, errors.New("the first process in its namespaces died")}
}

// signal sends a signal to the first process, which passes it on to the command. SIGKILL ends the first process, and
// with it everything in its namespaces.
func (a *apart) signal(sig unix.Signal) error { return unix.Kill(a.pid, sig) }

// finish returns how the command ended, as the first process reported it, if it did.
func (a *apart) finish() drover.Exit {
	e := a.command.finish()
	var last report
	if a.reports.Read(&last) == nil && last.Exit != nil {
		e.Code, e.Signal, e.CPU, e.MaxRSS = last.Exit.Code, last.Exit.Signal, last.Exit.CPU, last.Exit.MaxRSS
	}
	a.pipe.Close()
	return e
}

// initiateApart is the first process of an attempt's namespaces, and returns its exit code. It mounts what the attempt
// may see, starts the command as the attempt's user and waits for it to end. Without a command it only tries the
// mounts. It writes reports to descriptor 3 and reads the command's environment from descriptor 4.
func initiateApart(args []string) int {
	signals := forwarded()
	unix.CloseOnExec(3)
	pipe := os.NewFile(3, "reports")
	defer pipe.Close()
	uid, err := strconv.Atoi(args[0])
	if err == nil {
		err = mountApart(folder(args[1]))
	}
	if err == nil && len(args) == 2 {
		return 0
	}
	return attend(pipe, signals, func() (*command, error) {
		if err != nil {
			return nil, &failure{runtimeFailed, fmt.Errorf("isolating it: %w", err)}
		}
		env, err := readEnvironment()
		if err != nil {
			return nil, &failure{runtimeFailed, fmt.Errorf("receiving its environment: %w", err)}
		}
		return startAs(uid, args[2:], env)
	})
}

// readEnvironment reads the command's environment from descriptor 4.
func readEnvironment() (env map[string]string, err error) {
	unix.CloseOnExec(4)
	given := os.NewFile(4, "environment")
	defer given.Close()
	return env, wire.NewConn(given, nil).Read(&env)
}

// startAs starts the command as the given user, which it can never change.
func startAs(uid int, args []string, env map[string]string) (*command, error) {
	path, err := lookUp(args[0], env["PATH"])
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the child inherits what is set on this thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: apartProcesses, Max: apartProcesses}); err != nil {
		return nil, err
	}
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // EPERM: no keyrings in a container
		return nil, fmt.Errorf("leaving the keyring of the login session: %w", err)
	}
	return spawn(path, args, attributes{env: pairs(env), files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, uid: uid})
}

// mountApart mounts what the attempt may see, in its own namespaces, and changes to its working folder.
func mountApart(f folder) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making its mounts private: %w", err)
	}
	if err := os.MkdirAll(insideFolder, 0o755); err != nil {
		return err
	}
	const plain = unix.MS_NOSUID | unix.MS_NODEV
	mounts := []struct {
		source, target, kind string
		flags                uintptr
		data                 string
		needed               bool
	}{
		{"proc", "/proc", "proc", plain | unix.MS_NOEXEC, "", true},
		{"tmpfs", insideFolder, "tmpfs", plain | unix.MS_NOEXEC, "mode=755,size=64k", true},
		{f.work(), insideWork, "", unix.MS_BIND, "", true},
		{f.told(), insideTold, "", unix.MS_BIND, "", true},
		{f.tmp(), "/var/tmp", "", unix.MS_BIND, "", false}, // before /tmp, which may hide it
		{f.tmp(), "/tmp", "", unix.MS_BIND, "", true},
		{"tmpfs", "/dev/shm", "tmpfs", plain, "mode=1777", false},
		{"tmpfs", "/dev/mqueue", "tmpfs", plain, "mode=1777,size=64k", false},
		{"tmpfs", "/run/lock", "tmpfs", plain, "mode=1777,size=5m", false},
	}
	for _, m := range mounts {
		if strings.HasPrefix(m.target, insideFolder+"/") {
			if err := os.Mkdir(m.target, 0o755); err != nil {
				return err
			}
		}
		err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data)
		if err != nil && (m.needed || !errors.Is(err, fs.ErrNotExist)) { // not every system has all of them
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	if err := unix.Mount("", insideTold, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", insideTold, err)
	}
	return os.Chdir(insideWork)
}

// apartEnv returns what differs in an isolated attempt's environment: its user has no home but the working folder.
func apartEnv() map[string]string {
	return map[string]string{"PWD": insideWork, "HOME": insideWork, "DROVER_NOTICE_FILE": insideTold + "/notice"}
}
