package runner

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestExecuteWaitsForAProgramOpenForWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("#!/bin/sh\nexit 7\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{}); err != syscall.ETXTBSY {
		t.Skipf("this kernel executes files that are open for writing: %v", err)
	}
	time.AfterFunc(4*busyPause, func() { f.Close() })
	pid, err := execute(path, []string{path}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 7 {
		t.Errorf("it ended with %d, %v", status.ExitStatus(), err)
	}
}
