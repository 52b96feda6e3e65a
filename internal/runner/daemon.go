package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/backoff"
	"drover/internal/cgroup"
	"drover/internal/wire"
)

const (
	// greetPatience bounds the wait for a connection's first line.
	greetPatience = 30 * time.Second
	// maxConns bounds the connections to the daemon, control stream and bulk channels together.
	maxConns = 256
	// maxAttempts bounds the attempts that the daemon keeps, so that a Hello with all of them fits a message.
	maxAttempts = 2000
	// tickInterval is how often the daemon does its housekeeping.
	tickInterval = 10 * time.Second
	// keepEnded is how long an ended attempt is kept if no controller sends Forget. A controller that is away longer
	// does not get its result.
	keepEnded = 7 * 24 * time.Hour
)

// daemon keeps a folder's attempts and serves one control stream and any number of bulk channels.
type daemon struct {
	folder      string // absolute; also the working folder
	identity    identity
	boot        string
	log         *log.Logger
	leave       context.CancelFunc // ends the daemon
	supervisors supervisorPool
	blobs       *blobs
	trash       *trash
	api         *api

	containers containers
	groups     *cgroup.Base // where control groups are made; nil: nowhere
	apart      struct {     // whether attempts' namespaces have been shown to work
		sync.Mutex
		works bool
	}

	hearer atomic.Pointer[session] // receives the log's lines: the control stream, once its Hello has been answered

	mu       sync.Mutex
	epoch    int64 // the highest seen
	fence    *fence
	attempts map[drover.AttemptID]*attempt
	session  *session // the control stream; nil if there is none

	orders       orders
	watchdog     watchdog
	interruption *interruption // nil: no notice from the cloud is in force
	health       health
}

// runDaemon is the daemon's process. It ends on a signal or when a newer program takes over. Its readiness pipe, if it
// has one, is descriptor 3.
func runDaemon(o options) error {
	ready := os.NewFile(3, "ready")
	defer ready.Close()
	unix.CloseOnExec(3)
	lock, listener, d, err := openDaemon(o, ready)
	if err != nil {
		fmt.Fprint(ready, err)
		return err
	}
	defer lock.Close()
	ctx, leave := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer leave()
	d.leave = leave
	// The write fails without a readiness pipe, which is no reason to stop.
	fmt.Fprint(ready, readyWord)
	ready.Close()
	return d.run(ctx, listener)
}

// openDaemon makes this process the folder's daemon, once its predecessor has exited, and reads the folder's state.
func openDaemon(o options, ready *os.File) (lock *os.File, l *net.UnixListener, d *daemon, err error) {
	if err := os.Chdir(o.dir); err != nil {
		return nil, nil, nil, err
	}
	if lock, err = lockDaemon(ready); err != nil {
		return nil, nil, nil, err
	}
	if err := writePID(lock); err != nil {
		return nil, nil, nil, err
	}
	if d, err = newDaemon(o); err != nil {
		return nil, nil, nil, err
	}
	if err := os.Remove(socketName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil, err
	}
	if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: socketName}); err != nil {
		return nil, nil, nil, err
	}
	// The successor removes the socket: when this daemon closes it, the name may already be the successor's.
	l.SetUnlinkOnClose(false)
	return lock, l, d, nil
}

// lockDaemon waits for the predecessor to exit, but only while the bridge that started this daemon waits: successors
// must not queue up behind a predecessor that hangs.
func lockDaemon(ready *os.File) (*os.File, error) {
	for {
		lock, err := lockFile("daemon.lock", os.O_CREATE|os.O_RDWR, false)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return lock, err
		}
		pipe := []unix.PollFd{{Fd: int32(ready.Fd())}}
		if _, err := unix.Poll(pipe, lockInterval); err != nil && err != unix.EINTR {
			return nil, fmt.Errorf("waiting for the previous daemon: %w", err)
		}
		if pipe[0].Revents&unix.POLLERR != 0 {
			return nil, errors.New("the previous daemon has not exited, and no controller is waiting for this one any more")
		}
	}
}

// lockInterval is the pause between two tries for the lock, in milliseconds.
const lockInterval = 10

// writePID writes this process's pid to the lock file, for people.
func writePID(lock *os.File) error {
	// A full disk has no room for it once the old pid's is given up.
	n, err := lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	return errors.Join(err, lock.Truncate(int64(n)))
}

func newDaemon(o options) (*daemon, error) {
	d := &daemon{attempts: make(map[drover.AttemptID]*attempt)}
	d.log = log.New(io.MultiWriter(teller{d}, os.Stderr), "", log.LstdFlags|log.LUTC)
	var err error
	if d.folder, err = unix.Getwd(); err != nil {
		return nil, err
	}
	if d.identity, err = settleIdentity(o.identity); err != nil {
		return nil, err
	}
	if d.boot, err = bootID(); err != nil {
		return nil, err
	}
	if d.epoch, err = readEpoch(); err != nil {
		return nil, err
	}
	if d.fence, err = openFence(); err != nil {
		return nil, err
	}
	d.orders, d.watchdog, d.interruption = readOrders(), readWatchdog(), readInterruption(d.boot)
	if d.trash, err = newTrash(); err != nil {
		return nil, err
	}
	if d.blobs, err = newBlobs(); err != nil {
		return nil, err
	}
	if d.api, err = newAPI(d.log); err != nil {
		return nil, err
	}
	d.containers = containers{log: d.log, sweep: d.sweep}
	d.findGroups()
	return d, os.MkdirAll(attemptsFolder, 0o700)
}

// findGroups finds where control groups can be made, and removes the groups there that earlier attempts left behind.
func (d *daemon) findGroups() {
	base, err := cgroup.Find()
	if err != nil {
		d.log.Printf("commands run without CPU and memory limits, unless in containers: %s", oneLine(err))
		return
	}
	d.groups = &base
	base.Sweep(placePrefix, time.Now().Add(-time.Minute))
}

// run serves until the context ends. Running attempts continue without it.
func (d *daemon) run(ctx context.Context, l *net.UnixListener) error {
	if err := d.adopt(); err != nil {
		return fmt.Errorf("adopting the attempts: %w", err)
	}
	d.log.Printf("daemon %d (%s) of %s in fleet %s is starting with %d attempts", os.Getpid(), binaryName(), d.identity.Instance, d.identity.Fleet, len(d.attempts))
	defer d.log.Printf("daemon %d is exiting", os.Getpid())
	d.mu.Lock()
	if d.interruption != nil { // an earlier daemon began it
		d.standLocked()
	}
	d.mu.Unlock()
	go d.obey(ctx)
	go d.trash.run(ctx)
	go d.api.run(ctx, d.announce)
	go d.accept(l)
	go d.warm()
	backoff.Every(ctx, tickInterval, d.tick)
	return l.Close()
}

// warm starts a supervisor ahead of the first attempt.
func (d *daemon) warm() {
	if o, err := d.supervisors.take(); err != nil {
		d.log.Print(err)
	} else {
		d.supervisors.put(o)
	}
}

// tick does the periodic housekeeping.
func (d *daemon) tick() {
	d.supervisors.trim()
	if err := d.blobs.evict(); err != nil {
		d.log.Printf("evicting blobs: %v", err)
	}
	d.dropOld(time.Now().Add(-keepEnded))
	if err := limitLog(os.Stderr); err != nil {
		d.log.Printf("rotating the log: %v", err)
	}
	// If the folder was removed, its daemon must exit too.
	if _, err := os.Stat(socketName); errors.Is(err, os.ErrNotExist) {
		d.log.Print("the socket is gone")
		d.leave()
	}
}

// accept accepts connections until the listener is closed.
func (d *daemon) accept(l *net.UnixListener) {
	places := make(chan struct{}, maxConns)
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely out of descriptors: other connections must end first.
			d.log.Printf("accepting a connection: %v", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case places <- struct{}{}:
			go func() {
				defer func() { conn.Close(); <-places }()
				d.serve(conn)
			}()
		default:
			conn.Close()
		}
	}
}

// serve reads a connection's greeting and serves the connection to its end.
func (d *daemon) serve(conn *net.UnixConn) {
	lines := wire.NewConn(conn, conn)
	var hello greeting
	if conn.SetReadDeadline(time.Now().Add(greetPatience)) != nil || lines.Read(&hello) != nil {
		return
	}
	// A control stream is served by its own version of the program; a bulk channel by any version.
	leaving := hello.Role == "control" && hello.Binary != binaryName()
	if lines.Write(welcome{Leaving: leaving}) != nil {
		return
	}
	switch {
	case leaving:
		d.log.Printf("handing over to %s", hello.Binary)
		d.leave()
	case hello.Role == "control":
		d.serveControl(conn, lines)
	case hello.Role == "bulk" && conn.SetReadDeadline(time.Time{}) == nil:
		d.serveBulk(conn, lines)
	}
}
