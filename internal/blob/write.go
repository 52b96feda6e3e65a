package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
)

// newPartial creates a file that has no final name yet.
func newPartial(root *os.Root) (name string, f *os.File, err error) {
	name = path.Join(partial, rand.Text())
	f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return name, f, err
}

// fill writes everything in r to f, waits for the disk, and closes f.
func fill(ctx context.Context, f *os.File, r io.Reader) (hash string, size int64, err error) {
	hash, size, err = pour(ctx, f, r)
	if err == nil {
		err = f.Sync()
	}
	return hash, size, errors.Join(err, f.Close())
}

// pour writes everything in r to f, which the caller syncs.
func pour(ctx context.Context, f *os.File, r io.Reader) (hash string, size int64, err error) {
	sum := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, sum), whileAsked{ctx, r})
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

// whileAsked is a reader that returns the context's error once the context is done.
type whileAsked struct {
	ctx context.Context
	r   io.Reader
}

// Read reads until the context is done.
func (w whileAsked) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// syncFolder waits until the names in a folder are on disk.
func syncFolder(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
