package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The programs of the chaos cloud (chaoscloud_test.go): its driver, and the processes of its instances.

// sshd is the real OpenSSH server. It re-executes itself for each connection, and so requires its full path.
const sshd = "/usr/sbin/sshd"

// relay is the external driver of the chaos cloud. The cloud runs in the test and outlives every controller, like a
// real one; the driver only forwards lines between the two.
func relay(args []string) error {
	if len(args) != 2 || args[1] != "stream" {
		return errors.New("chaos-driver SOCKET stream")
	}
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// instance is the first process of an instance of the chaos cloud. It starts sshd and the init scripts, adopts every
// orphan below it, and ends with all of them on SIGTERM, which poweroff sends, or when its test is gone.
func instance(args []string) error {
	if len(args) != 1 {
		return errors.New("chaos-instance FOLDER")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopting orphaned processes: %w", err)
	}
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop <- syscall.SIGTERM
	}()
	programs := [][]string{{sshd, "-D", "-e", "-f", filepath.Join(args[0], "sshd_config")}}
	scripts, _ := filepath.Glob(filepath.Join(args[0], "init-*"))
	for _, script := range scripts {
		programs = append(programs, []string{"/bin/sh", script})
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	for _, program := range programs {
		attr := &os.ProcAttr{Env: os.Environ(), Files: []*os.File{null, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}}
		if _, err := os.StartProcess(program[0], program, attr); err != nil {
			return err
		}
	}
	go reap()
	<-stop
	endBelow(os.Getpid())
	return nil
}

// reap reaps every process that ends below this one, until none is left.
func reap() {
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
			return
		}
	}
}

// below returns all descendants of a process.
func below(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(append(pids, child), below(child)...)
			}
		}
	}
	return pids
}

// stopBelow stops all descendants of a process, including new ones.
func stopBelow(pid int) (stopped []int) {
	for {
		fresh := slices.DeleteFunc(below(pid), func(p int) bool { return slices.Contains(stopped, p) })
		if len(fresh) == 0 {
			return stopped
		}
		for _, p := range fresh {
			syscall.Kill(p, syscall.SIGSTOP)
		}
		stopped = append(stopped, fresh...)
	}
}

// endBelow ends all descendants of a process at once, as a power cut would: it first stops whatever could report a
// job's death.
func endBelow(pid int) {
	for len(below(pid)) > 0 {
		for _, p := range stopBelow(pid) {
			syscall.Kill(p, syscall.SIGKILL)
		}
	}
}
