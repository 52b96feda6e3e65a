package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
	"drover/internal/backoff"
	"drover/internal/folderlock"
	"drover/internal/processes"
)

// powerOffTime is how long an instance's own processes have for an orderly end.
const powerOffTime = 2 * time.Second

// Destroy ends the instance's processes, whatever their state, and removes its folder.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	path, err := c.path(id)
	if err != nil {
		return nil // never assigned, so there is no instance
	}
	if err := powerOff(ctx, path); err != nil {
		return errs.Classify("destroy instance "+id, err)
	}
	held, err := folderlock.Lock(ctx, filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errs.Classify("destroy instance "+id, err)
	}
	defer folderlock.Unlock(held)
	return errs.Classify("destroy instance "+id, c.remove(ctx, path))
}

// Stop ends the instance's processes and leaves its folder, which contains everything that Start needs.
func (c *cloud) Stop(ctx context.Context, id string) error {
	doing := "stop instance " + id
	in, err := c.Describe(ctx, id)
	if err != nil || in.State == driver.Stopped {
		return err
	}
	path, err := c.path(id)
	switch {
	case err != nil:
		return err
	case !has(path, upFile):
		return drover.Errorf(drover.KindTransient, "%s: it is still booting", doing)
	}
	if err = os.WriteFile(filepath.Join(path, stoppedFile), nil, 0o600); err == nil {
		err = powerOff(ctx, path)
	}
	if err != nil {
		return errs.Classify(doing, err)
	}
	// A process forked by this one holds the instance's lock until its exec, if it was forked while the instance started.
	for until := time.Now().Add(powerOffTime); ; {
		in, err = c.Describe(ctx, id)
		switch {
		case err != nil || in.State == driver.Stopped:
			return err
		case time.Now().After(until) || backoff.For(ctx, 10*time.Millisecond) != nil:
			return drover.Errorf(drover.KindTransient, "%s: it has not ended yet", doing)
		}
	}
}

// Start starts the processes again, at another address. It refuses an instance that the cloud took back.
func (c *cloud) Start(ctx context.Context, id string) error {
	path, err := c.path(id)
	if err != nil {
		return err
	}
	fleet, err := folderlock.Lock(ctx, filepath.Dir(path))
	if err != nil {
		return notFound(id, err)
	}
	defer folderlock.Unlock(fleet)
	return errs.Classify("start instance "+id, c.startAgain(ctx, path))
}

// startAgain starts a stopped instance, unless it is alive. The fleet's lock is held.
func (c *cloud) startAgain(ctx context.Context, path string) error {
	switch alive, err := folderlock.Held(path); {
	case err != nil || alive:
		return err
	case has(path, noticesFile):
		return drover.Errorf(drover.KindUnsupported, "it was reclaimed")
	case !remains(path):
		return os.ErrNotExist
	}
	if _, err := c.lookAtRemains(ctx, c.o.Fleet, path); err != nil {
		return err
	}
	program, err := c.ourProgram(ctx)
	if err != nil {
		return err
	}
	var l launch
	r, err := readRecord(path)
	err = errors.Join(err, readJSON(filepath.Join(path, stoppedFile), &l))
	if err == nil {
		err = c.boot(ctx, path, program, l, r)
	}
	if err == nil {
		err = os.Remove(filepath.Join(path, stoppedFile)) // while the file existed, the instance could not be lost
	}
	return err
}

// powerOff tells the outer process to end the instance, so that it can end its children, and waits a little. It is no
// error if the process is already gone: remove ends whatever is left.
func powerOff(ctx context.Context, path string) error {
	text, err := os.ReadFile(filepath.Join(path, pidFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text))) // 0, which no process has, if somebody damaged the file
	// Opening the descriptor before checking the process ensures that the checked process is the one that is signalled.
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	if !processes.Marked(pid, marked(path)) || unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0) != nil {
		return nil
	}
	limit := powerOffTime
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(0, time.Until(deadline)))
	}
	for until := time.Now().Add(limit); ; {
		left := max(0, time.Until(until))
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// remove ends every process of an instance and removes its folder. The fleet's lock is held.
func (c *cloud) remove(ctx context.Context, path string) error {
	err := processes.EndAll(ctx, func() ([]int, error) { return processes.WithMarker(marked(path)) })
	if err != nil {
		return err
	}
	c.reap()
	return removeAll(ctx, path)
}

// removeAll removes a folder, even if a job made folders in it read-only, or a rootless container left files of its
// other users in it: only in podman's user namespace are those users ours.
func removeAll(ctx context.Context, path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			os.Chmod(name, 0o700) // of another user's, it fails
		}
		return nil
	})
	if err = os.RemoveAll(path); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if exec.CommandContext(ctx, "podman", "unshare", "rm", "-rf", "--", path).Run() == nil {
		return nil
	}
	return err
}

// reap collects the exit status of the outer processes that we started and that have ended, so that they do not stay as
// zombies.
func (c *cloud) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.children = slices.DeleteFunc(c.children, func(pid int) bool {
		ended, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return ended == pid || errors.Is(err, unix.ECHILD)
	})
}
