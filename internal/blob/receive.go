package blob

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"drover"
)

// Receive unpacks the outputs of an element from a tar stream that its instance sends, and puts them in the place of whatever an
// earlier attempt left. It reads the stream to its end, and an error there, or anywhere before, leaves the earlier outputs as they were.
// An empty archive leaves no folder. The files come back in the archive's order.
func (r *Results) Receive(ctx context.Context, job string, index int, stream io.Reader) ([]drover.File, error) {
	at, err := folder(job, index)
	if err != nil {
		return nil, err
	}
	files, err := r.receive(ctx, at, whileAsked{ctx, stream})
	if err != nil {
		return nil, fmt.Errorf("receiving the outputs of job %s: %w", job, err)
	}
	return files, nil
}

func (r *Results) receive(ctx context.Context, at string, stream io.Reader) ([]drover.File, error) {
	temporary := path.Join(partial, rand.Text())
	if err := r.root.Mkdir(temporary, 0o755); err != nil {
		return nil, err
	}
	defer r.root.RemoveAll(temporary) // finds nothing once it has been renamed
	into, err := r.root.OpenRoot(temporary)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	u := unpacker{ctx: ctx, into: into, left: r.limits}
	if err := u.unpack(stream); err != nil {
		return nil, err
	}
	return u.files, r.replace(temporary, at, len(u.files) == 0)
}

// replace puts the new folder in the place of the old. A crash between the two renames leaves neither: the attempt is not final yet, so
// its outputs will be sent again.
func (r *Results) replace(fresh, at string, empty bool) error {
	old := path.Join(partial, rand.Text())
	if err := r.root.Rename(at, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !empty {
		if err := r.root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
		if err := r.root.Rename(fresh, at); err != nil {
			return err
		}
		if err := errors.Join(syncFolder(r.root, path.Dir(at)), syncFolder(r.root, ".")); err != nil {
			return err
		}
	}
	return r.root.RemoveAll(old)
}

// unpacker unpacks an archive of a stranger's.
type unpacker struct {
	ctx   context.Context
	into  *os.Root
	left  Limits // what may still come
	files []drover.File
}

// maxPadding is how much may follow the archive within its stream.
const maxPadding = 1 << 20

func (u *unpacker) unpack(stream io.Reader) error {
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := u.entry(header, archive); err != nil {
			return err
		}
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(stream, maxPadding)); err != nil || n == maxPadding {
		return errors.Join(err, refuse(n == maxPadding, "the stream goes on after its archive"))
	}
	return u.sync()
}

// refuse is an error if it has come to that.
func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, format, args...)
}

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	name, err := u.admit(header)
	if err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		return u.folders(name)
	}
	if err := u.folders(path.Dir(name)); err != nil {
		return err
	}
	u.left.Files--
	mode := fs.FileMode(0o644)
	if header.FileInfo().Mode()&0o111 != 0 {
		mode = 0o755
	}
	f, err := u.into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	hash, size, err := fill(u.ctx, f, content)
	u.files = append(u.files, drover.File{Path: name, Mode: uint32(mode), Size: size, Hash: hash})
	return err
}

// folders makes a folder and those above it; each counts against the limit, or a few long names could make millions.
func (u *unpacker) folders(name string) error {
	if name == "." {
		return nil
	}
	if err := u.folders(path.Dir(name)); err != nil {
		return err
	}
	err := u.into.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	u.left.Files--
	return errors.Join(err, refuse(u.left.Files < 0, "there are too many folders"))
}

// admit checks an entry before anything is done about it, and returns its name.
func (u *unpacker) admit(header *tar.Header) (name string, err error) {
	name = path.Clean(header.Name)
	u.left.Bytes -= max(header.Size, 0)
	return name, cmp.Or(
		refuse(len(header.Name) > u.left.Name, "the name %.40q… is over the limit of %d bytes", header.Name, u.left.Name),
		refuse(!filepath.IsLocal(name) || !plain(name), "%.80q is not a name for a file", header.Name),
		refuse(header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir, "%.80q is neither a file nor a folder", header.Name),
		refuse(header.Typeflag == tar.TypeReg && name == ".", "%.80q is not a name for a file", header.Name),
		refuse(u.left.Files <= 0, "there are too many files"),
		refuse(u.left.Bytes < 0, "there is too much in the files"),
	)
}

// plain reports whether a name survives JSON and does nothing to a terminal.
func plain(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// sync waits until every name in the new folder is on disk; the files are already.
func (u *unpacker) sync() error {
	return fs.WalkDir(u.into.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncFolder(u.into, name)
	})
}
