//go:build chaos

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// warden keeps a controller running, as an init system does: when one ends, it starts the next.
type warden struct {
	place *place
	dice  *dice
	log   *os.File // of all controllers
	done  chan struct{}

	mu       sync.Mutex
	cmd      *exec.Cmd // guarded by mu
	ending   bool      // guarded by mu
	starts   int       // guarded by mu
	gaveUp   []string  // why controllers ended without being killed; guarded by mu
	pardoned time.Time // until when a controller may end for lack of disk space; guarded by mu
}

func newWarden(p *place, d *dice, log *os.File) *warden {
	return &warden{place: p, dice: d, log: log, done: make(chan struct{})}
}

// run starts one controller after another until end.
func (k *warden) run() {
	defer close(k.done)
	for k.start() {
		err := k.cmd.Wait()
		k.bury(err)
		if k.dice.float() < 0.3 {
			time.Sleep(k.dice.between(0, 3*time.Second)) // for a while there is no controller
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (k *warden) start() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending {
		return false
	}
	k.cmd = exec.Command(filepath.Join(binaries, "drover"), "serve", "-v", "-c", "drover.yaml")
	k.cmd.Dir = k.place.dir
	k.cmd.Env = append(os.Environ(), "PATH="+searchPath(), "XDG_STATE_HOME="+k.place.state)
	k.cmd.Stderr = k.log
	if err := k.cmd.Start(); err != nil {
		k.gaveUp = append(k.gaveUp, err.Error())
		return false
	}
	k.starts++
	return true
}

// bury records that a controller ended by itself.
func (k *warden) bury(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	status := k.cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	if !killed && !(k.ending && err == nil) && time.Now().After(k.pardoned) {
		k.gaveUp = append(k.gaveUp, fmt.Sprintf("controller %d at %s: %v", k.starts, time.Now().UTC().Format("15:04:05.000"), k.cmd.ProcessState))
	}
}

// pardon allows controllers to end by themselves for a while.
func (k *warden) pardon(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pardoned = time.Now().Add(d)
}

// end ends the controller cleanly.
func (k *warden) end(t *testing.T, limit time.Duration) {
	t.Helper()
	k.mu.Lock()
	k.ending = true
	if k.cmd != nil {
		k.cmd.Process.Signal(syscall.SIGTERM)
	}
	k.mu.Unlock()
	select {
	case <-k.done:
	case <-time.After(limit * busy):
		t.Errorf("the controller did not end within %v", limit*busy)
		k.cmd.Process.Kill()
		<-k.done
	}
}

// disk holds the controller's records, results and recordings. It can be filled if this process may mount disks.
type disk struct {
	path string     // empty: the host's disk
	full sync.Mutex // held while it is filled
}

// diskSize is plenty for a run; unused space costs nothing.
const diskSize = 256 << 20

// newDisk mounts a disk at a path until the test ends. Instances keep their files elsewhere, since they have their own
// disks.
func newDisk(t *testing.T, path, instances, elsewhere string) *disk {
	t.Helper()
	for _, folder := range []string{path, elsewhere} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &disk{path: path}
	if err := unix.Mount("drover-chaos", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", diskSize)); err != nil {
		t.Logf("the disk will not be filled: mounting one: %v (unshare -Urm make chaos may work)", err)
		d.path = ""
	} else {
		t.Cleanup(func() {
			if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
				t.Errorf("unmounting: %v", err)
			}
		})
	}
	if err := os.MkdirAll(filepath.Dir(instances), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, instances); err != nil {
		t.Fatal(err)
	}
	return d
}

// fill leaves no space on the disk until the context ends.
func (d *disk) fill(ctx context.Context) error {
	path := filepath.Join(d.path, "filler")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	zeros := bytes.NewReader(make([]byte, 64<<10))
	for ctx.Err() == nil {
		// It also takes space that others free.
		zeros.Seek(0, io.SeekStart)
		if _, err := io.Copy(f, zeros); err != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}
