package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"drover"
	"drover/internal/remote"
)

// findRunner finds the program that is put on instances: the one built beside this one, or else this one itself, which can do the same
// but is larger.
func findRunner() (remote.Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return remote.Runner{}, err
	}
	beside := filepath.Join(filepath.Dir(self), "drover-runner-linux-"+runtime.GOARCH)
	r, err := runnerFile(beside)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if runtime.GOOS != "linux" {
		return r, drover.Errorf(drover.KindInvalid, "there is no runner for instances: %s is not there", beside).WithHint("make build puts it there")
	}
	return runnerFile("/proc/self/exe")
}

func runnerFile(path string) (remote.Runner, error) {
	return remote.NewRunner(func() (io.ReadCloser, error) { return os.Open(path) })
}
