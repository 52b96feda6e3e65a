//go:build !e2e && !chaos && !qemu

package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// buildProgram makes the test binary serve as drover. The runner next to it is a script that starts the real one:
// sending the real one to each instance would take longer than the tests themselves.
func buildProgram(folder string) error {
	if err := os.Mkdir(filepath.Join(folder, "runners"), 0o700); err != nil {
		return err
	}
	runner := filepath.Join(folder, "drover-runner")
	if err := goBuild(nil, runner, "../../cmd/drover-runner"); err != nil {
		return err
	}
	script := filepath.Join(folder, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec '"+runner+"' \"$@\"\n"), 0o600); err != nil {
		return err
	}
	packed, err := compress(script)
	if err != nil {
		return err
	}
	if err := os.Rename(packed, filepath.Join(folder, "runners", "linux-"+runtime.GOARCH+".gz")); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return os.Symlink(self, filepath.Join(folder, "drover"))
}
