package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"drover"
)

// checkFiles refuses inputs that are not files within the working folder.
func checkFiles(files []drover.File) error {
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "." {
			return fmt.Errorf("input %q is not a path within the working folder", f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("input %q is given twice", f.Path)
		}
		seen[f.Path] = true
		if !isHash(f.Hash) || f.Size < 0 {
			return fmt.Errorf("input %q has an invalid hash or size", f.Path)
		}
	}
	return nil
}

// lay puts copies of the pinned blobs where the attempt's command expects its inputs.
func (d *daemon) lay(f folder, files []drover.File) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(f.work())
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range files {
		if err := d.layFile(root, file); err != nil {
			return layError{fmt.Errorf("placing input %q: %w", file.Path, err)}
		}
	}
	return nil
}

func (d *daemon) layFile(root *os.Root, file drover.File) error {
	blob, err := d.blobs.open(file.Hash)
	if err != nil {
		return err
	}
	defer blob.Close()
	if info, err := blob.Stat(); err != nil || info.Size() != file.Size {
		return errors.Join(err, fmt.Errorf("blob %s is not %d bytes long", file.Hash, file.Size))
	}
	if err := root.MkdirAll(path.Dir(file.Path), 0o755); err != nil {
		return err
	}
	out, err := root.OpenFile(file.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	mode := os.FileMode(file.Mode)&0o777 | 0o600
	return errors.Join(cloneOrCopy(out, blob), out.Chmod(mode), out.Close())
}

// cloneOrCopy copies the blob's content to out, rather than linking it: a job's changes to its inputs must not reach
// the next job.
func cloneOrCopy(out, blob *os.File) error {
	if unix.IoctlFileClone(int(out.Fd()), int(blob.Fd())) == nil {
		return nil
	}
	_, err := io.Copy(out, blob)
	return err
}
