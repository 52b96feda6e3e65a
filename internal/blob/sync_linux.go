package blob

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncAll writes everything on the root's file system to disk.
func syncAll(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
