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

// fetched is a list of outputs, each of which is in the folder when it is yielded.
func (a *app) fetched(ctx context.Context, svc drover.Queue, files iter.Seq2[jobOutput, error], folder string) iter.Seq2[jobOutput, error] {
	return func(yield func(jobOutput, error) bool) {
		var root *os.Root // once there is something to lay in it
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
				err = fetch(ctx, svc, root, o)
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

// fetch lays one file below the root, whole and proved or not at all. Whatever the path is, it is not followed out of the root.
func fetch(ctx context.Context, svc drover.Queue, root *os.Root, o jobOutput) error {
	if path.Clean(o.place) != o.place || !filepath.IsLocal(o.place) || o.place == "." {
		return drover.Errorf(drover.KindInternal, "job %v has an output with a path that leads elsewhere: %q", o.Job, o.Path)
	}
	content, err := svc.OpenOutput(ctx, o.Job, o.Path)
	if err != nil {
		return fmt.Errorf("fetching %s of job %v: %w", o.Path, o.Job, err)
	}
	defer content.Close()
	if err := root.MkdirAll(path.Dir(o.place), 0o777); err != nil {
		return err
	}
	partial := path.Join(path.Dir(o.place), ".drover-"+rand.Text()[:8])
	err = receive(root, partial, content, o.file)
	if err == nil {
		err = root.Rename(partial, o.place)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("fetching %s of job %v: %w", o.Path, o.Job, err), root.Remove(partial))
	}
	return nil
}

// receive writes content to a new file and proves that it is what was promised.
func receive(root *os.Root, name string, content io.Reader, promised drover.File) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(promised.Mode).Perm()|0o200)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(content, promised.Size+1))
	if err != nil {
		return err
	}
	if hash := hex.EncodeToString(sum.Sum(nil)); n != promised.Size || promised.Hash != "" && hash != promised.Hash {
		return drover.Errorf(drover.KindTransient, "what came is not what was promised").WithHint("say it again")
	}
	return f.Close()
}
