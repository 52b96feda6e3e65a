package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"

	"drover"
)

// fetched yields outputs, each after it is in the folder.
func (a *app) fetched(ctx context.Context, svc drover.Queue, files iter.Seq2[jobOutput, error], folder string) iter.Seq2[jobOutput, error] {
	return func(yield func(jobOutput, error) bool) {
		var root *os.Root // once there is a file to write
		defer func() {
			if root != nil {
				root.Close()
			}
		}()
		for o, err := range files {
			if err == nil && root == nil {
				root, err = openFolder(folder)
			}
			if err == nil {
				err = a.fetch(ctx, svc, root, o)
			}
			o.place = filepath.Join(folder, o.place)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func openFolder(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	return os.OpenRoot(folder)
}

// fetch writes one file below the root, complete and verified or not at all. No path can lead out of the root.
func (a *app) fetch(ctx context.Context, svc drover.Queue, root *os.Root, o jobOutput) error {
	if path.Clean(o.place) != o.place || !filepath.IsLocal(o.place) || o.place == "." {
		return drover.Errorf(drover.KindInternal, "job %v has an output whose path points outside its folder: %q", o.Job, o.Path)
	}
	if err := root.MkdirAll(path.Dir(o.place), 0o777); err != nil {
		return err
	}
	partial := path.Join(path.Dir(o.place), ".drover-"+rand.Text()[:8])
	err := a.receive(ctx, svc, root, partial, o)
	if err == nil {
		err = root.Rename(partial, o.place)
	}
	if err != nil {
		root.Remove(partial) // if it exists
		return fmt.Errorf("fetching %s of job %v: %w", o.Path, o.Job, err)
	}
	return nil
}

// receive writes an output to a new file and verifies its hash. When the connection breaks, it continues at the same
// offset.
func (a *app) receive(ctx context.Context, svc drover.Queue, root *os.Root, name string, o jobOutput) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(o.file.Mode).Perm()|0o200)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	at, size := int64(0), o.file.Size
	for whole := size == 0; !whole; {
		err := a.patiently(ctx, func() error {
			content, err := svc.OpenOutput(ctx, o.Job, o.Path, at)
			if err != nil {
				return err
			}
			defer content.Close()
			n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, size+1-at))
			at += n
			whole = err == nil || at >= size
			if away(err) && n > 0 {
				return nil // there was progress, so it continues from there
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if hash := hex.EncodeToString(sum.Sum(nil)); at != size || o.file.Hash != "" && hash != o.file.Hash {
		return drover.Errorf(drover.KindTransient, "%s does not match its hash", o.Path).WithHint("try again")
	}
	return f.Close()
}

// writeFile writes a file that the user names, which may be a pipe or a device. If it fails, it leaves no partial file.
func writeFile(path string, flag int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o666)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		if info, _ := os.Lstat(path); info != nil && info.Mode().IsRegular() {
			os.Remove(path)
		}
	}
	return err
}
