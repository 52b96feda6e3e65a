package blob

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll waits until everything is on the disk on which the root is.
func syncAll(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
