package blob

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"drover"
	"drover/internal/folderlock"
)

// Dir is a folder of contents by hash.
type Dir struct {
	root *os.Root
	lock *os.File
}

// partial is the folder in a Dir, and in Results, for files that have no name yet.
const partial = ".partial"

// OpenDir opens the folder at path, or makes it, readable by this user only.
func OpenDir(path string) (*Dir, error) {
	root, lock, err := openRoot(path, 0o700)
	if err != nil {
		return nil, fmt.Errorf("opening the files in %s: %w", path, err)
	}
	return &Dir{root, lock}, nil
}

// openRoot opens a folder with a subfolder for partial files, and removes what a crash left there.
func openRoot(path string, perm fs.FileMode) (*os.Root, *os.File, error) {
	if err := os.MkdirAll(path, perm); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	if err := errors.Join(root.RemoveAll(partial), root.Mkdir(partial, 0o700)); err != nil {
		return nil, nil, errors.Join(err, root.Close(), lock.Close())
	}
	return root, lock, nil
}

// lockFolder locks the folder for this process; closing the file releases the lock.
func lockFolder(path string) (*os.File, error) {
	f, err := folderlock.Try(path)
	if f == nil && err == nil {
		err = drover.Errorf(drover.KindTransient, "%s is in use by another process", path).WithHint("wait until that process exits, or choose another folder")
	}
	return f, err
}

// Close releases the folder.
func (d *Dir) Close() error { return errors.Join(d.root.Close(), d.lock.Close()) }

// Put stores everything in r, and returns its hash and size.
func (d *Dir) Put(ctx context.Context, r io.Reader) (hash string, size int64, err error) {
	if hash, size, err = d.put(ctx, r, admitAll); err != nil {
		return "", 0, fmt.Errorf("storing a file: %w", err)
	}
	return hash, size, nil
}

// PutAs stores everything in r, at most limit bytes, if it has the hash. KindInvalid: it has another, or is longer;
// then nothing is stored.
func (d *Dir) PutAs(ctx context.Context, hash string, r io.Reader, limit int64) error {
	if err := checkHash(hash); err != nil {
		return err
	}
	_, _, err := d.put(ctx, io.LimitReader(r, limit+1), func(got string, size int64) error {
		return cmp.Or(
			refuse(size > limit, "the file exceeds the limit of %d bytes", limit),
			refuse(got != hash, "the file has the hash %s, not %s", got, hash),
		)
	})
	if err == nil || drover.KindOf(err) == drover.KindInvalid {
		return err
	}
	return fmt.Errorf("storing a file: %w", err)
}

func admitAll(string, int64) error { return nil }

// put stores what admit does not refuse.
func (d *Dir) put(ctx context.Context, r io.Reader, admit func(hash string, size int64) error) (hash string, size int64, err error) {
	name, f, err := newPartial(d.root)
	if err != nil {
		return "", 0, err
	}
	defer d.root.Remove(name) // finds nothing once it has been renamed
	if hash, size, err = fill(ctx, f, r); err != nil {
		return "", 0, err
	}
	if err := admit(hash, size); err != nil {
		return "", 0, err
	}
	return hash, size, d.name(name, hash)
}

// PutFile stores a copy of the file at path, as it is while it is read. The copy does not change when the file does.
func (d *Dir) PutFile(ctx context.Context, path string) (hash string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return d.Put(ctx, f)
}

// name gives a filled file the name of its contents. It replaces the same contents if they exist already, so that the
// time this takes does not reveal to a stranger whether they did.
func (d *Dir) name(from, hash string) error {
	if err := d.root.MkdirAll(path.Dir(place(hash)), 0o700); err != nil {
		return err
	}
	if err := d.root.Rename(from, place(hash)); err != nil {
		return err
	}
	return syncFolder(d.root, path.Dir(place(hash)))
}

// Has reports whether there are contents with this hash.
func (d *Dir) Has(hash string) bool {
	_, there := d.Size(hash)
	return there
}

// Size returns the size of the contents with this hash in bytes, if they exist.
func (d *Dir) Size(hash string) (size int64, there bool) {
	if checkHash(hash) != nil {
		return 0, false
	}
	info, err := d.root.Stat(place(hash))
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}

// Each calls do for each of the Dir's folders, with the hashes of the contents stored there before a time.
func (d *Dir) Each(before time.Time, do func(hashes []string) error) error {
	folders, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if folder.Name() == partial || !folder.IsDir() {
			continue
		}
		files, err := fs.ReadDir(d.root.FS(), folder.Name())
		if err != nil {
			return err
		}
		var hashes []string
		for _, f := range files {
			info, err := f.Info()
			if err == nil && checkHash(f.Name()) == nil && info.ModTime().Before(before) {
				hashes = append(hashes, f.Name())
			}
		}
		if len(hashes) == 0 {
			continue
		}
		if err := do(hashes); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes contents, if they exist.
func (d *Dir) Remove(hash string) error {
	if err := checkHash(hash); err != nil {
		return err
	}
	return d.root.RemoveAll(place(hash))
}

// Open opens the contents with this hash. The caller closes them.
func (d *Dir) Open(hash string) (*os.File, error) {
	if err := checkHash(hash); err != nil {
		return nil, err
	}
	f, err := d.root.Open(place(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, drover.Errorf(drover.KindNotFound, "there is no file with the hash %s", hash)
	}
	return f, err
}

// place returns the path of contents, which are spread over 256 folders.
func place(hash string) string { return path.Join(hash[:2], hash) }

// checkHash refuses text that is not a hash, and so every path that a stranger could pass off as one.
func checkHash(hash string) error {
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != hash {
		return drover.Errorf(drover.KindInvalid, "%.80q is not a hash", hash)
	}
	return nil
}
