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

// Where users share an instance, each attempt is kept apart from all others: it runs as a user of its own, in a control
// group of its own, and in namespaces of its own, in which it sees no processes but its own and has a /tmp to itself.
// The runner's folder, root's alone, is out of its reach: what it has there is bound to insideFolder.
//
// The namespaces' first process is this program, see initiateApart, and all that is in them dies with it.

// apartUIDs is where attempts have their users' ids from. No system gives these out: see "Users, Groups, UIDs and GIDs
// on systemd systems", where they are unused.
const (
	firstApartUID = 0x70000000
	apartUIDs     = 1 << 16
)

// apartProcesses is how many processes and threads an attempt may have: enough for any job, and too few to leave the
// others without process ids.
const apartProcesses = 8192

// Where an attempt that is kept apart finds its folders.
const (
	insideFolder = "/run/drover"
	insideWork   = insideFolder + "/work"
	insideTold   = insideFolder + "/told"
)

// tmp is the folder that is an attempt's /tmp.
func (f folder) tmp() string { return f.path("tmp") }

// keepsApart says why attempts cannot be kept apart here; nil if they can.
func (d *daemon) keepsApart() error {
	info, err := os.Stat(d.folder)
	if err != nil {
		return err
	}
	switch {
	case os.Geteuid() != 0:
		return errors.New("the runner is not running as root here")
	case info.Sys().(*syscall.Stat_t).Uid != 0 || info.Mode().Perm() != 0o700:
		return fmt.Errorf("the runner's folder, %s, is not private to root: attempts have run here without isolation", d.folder)
	case d.groups == nil:
		return errors.New("control groups for memory and cpu cannot be created")
	}
	return errors.Join(deadman.Find().Keep(), d.tryApart())
}

// tryApart makes namespaces as an attempt's, until that has worked once.
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
	failed := a.reports.Read(&why) == nil && why.Exit != nil // it says nothing if all is well
	<-a.ended()
	switch code := a.finish().Code; {
	case failed:
		return errors.New(why.Exit.Text)
	case code != 0:
		return fmt.Errorf("the first process of its namespaces exited with %d", code)
	}
	d.apart.works = true
	return nil
}

// takeUIDLocked is a user id that no attempt here has, and that none has had for long. Those in use are in the
// attempts' journals; the file only has them taken in turn.
func (d *daemon) takeUIDLocked() (int, error) {
	const name = "uid"
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	last, _ := strconv.Atoi(strings.TrimSpace(string(text))) // one that is no number counts as none
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

// openTo gives an attempt's user what is its own in the folder.
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

// apart is a command that is kept apart. The process that is watched is its namespaces' first.
type apart struct {
	*command
	reports *wire.Conn
	pipe    io.Closer
}

// spawnApart starts the first process of namespaces of their own, see initiateApart.
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

// startApart executes the order's command in namespaces of its own, as a user of its own.
func startApart(o order, j journal) (*apart, error) {
	group := o.makeGroup(j)
	if group == nil {
		return nil, &failure{runtimeFailed, errors.New("there is no control group to keep it in")}
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
	// What is root has nothing of the job's in its environment, which loaders and runtimes heed.
	own := append(ownVariables(), marker+"="+string(o.Folder))
	a, err := spawnApart(o.Place.UID, o.Folder, o.Command, attributes{env: own, files: append(files, envR), group: group})
	envR.Close()
	go func() { // longer than a pipe holds; whoever reads it may be dead
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
	return nil, &failure{runtimeFailed, errors.New("the first process of its namespaces died")}
}

// signal has the first process pass a signal on to the command. SIGKILL ends it, and with it all that is in its
// namespaces.
func (a *apart) signal(sig unix.Signal) error { return unix.Kill(a.pid, sig) }

// finish is how the command ended, in the words of the first process, if it lived to say so.
func (a *apart) finish() drover.Exit {
	e := a.command.finish()
	var last report
	if a.reports.Read(&last) == nil && last.Exit != nil {
		e.Code, e.Signal, e.CPU, e.MaxRSS = last.Exit.Code, last.Exit.Signal, last.Exit.CPU, last.Exit.MaxRSS
	}
	a.pipe.Close()
	return e
}

// initiateApart is the first process of an attempt's namespaces, and returns its exit code: it mounts what the attempt
// may see, starts the command as the attempt's user and stays with it. Without a command it only tries the mounts.
// Descriptor 3 takes its reports, and 4 has the command's environment.
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
			return nil, &failure{runtimeFailed, fmt.Errorf("its environment did not arrive: %w", err)}
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

// startAs starts the command as a user that nothing makes another.
func startAs(uid int, args []string, env map[string]string) (*command, error) {
	path, err := lookUp(args[0], env["PATH"])
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // whose child has what is set here
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

// mountApart mounts what an attempt is to see, in namespaces of its own, and goes to its working folder.
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

// apartEnv is what differs in the environment of an attempt that is kept apart: its user has no home but its working
// folder.
func apartEnv() map[string]string {
	return map[string]string{"PWD": insideWork, "HOME": insideWork, "DROVER_NOTICE_FILE": insideTold + "/notice"}
}
