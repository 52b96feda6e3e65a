package cgroup

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter calls start to make a process that is in the group from its first moment. start must use attr.
func (g *Group) Enter(attr *syscall.SysProcAttr, start func() (pid int, err error)) (int, error) {
	if !g.base.Unified {
		return g.enterByThread(start)
	}
	folder, err := os.OpenFile(g.memory, unix.O_PATH|os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	attr.UseCgroupFD, attr.CgroupFD = true, int(folder.Fd())
	return start()
}

// enterByThread starts the process from a thread that it moves into the group for that time, since a process starts in
// the group of the thread that makes it. A thread can enter a group alone, without the other threads of its process. If
// it cannot leave again, the thread ends.
func (g *Group) enterByThread(start func() (int, error)) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = g.moveThread(g.memory, g.cpu); err == nil {
			pid, err = start()
		}
		if g.moveThread(g.base.Memory, g.base.CPU) == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return pid, err
}

func (g *Group) moveThread(folders ...string) error {
	for _, folder := range folders {
		if err := write(folder, "tasks", strconv.Itoa(unix.Gettid())); err != nil {
			return fmt.Errorf("entering control group %s: %w", folder, err)
		}
	}
	return nil
}
