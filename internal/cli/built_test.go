//go:build !e2e && !chaos && !qemu

package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// buildProgram has the test binary be drover, with a runner for this host beside it.
func buildProgram(folder string) error {
	if err := os.Mkdir(filepath.Join(folder, "runners"), 0o700); err != nil {
		return err
	}
	packed, err := buildRunner(folder, runtime.GOARCH)
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
