package blob

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"drover"
)

// Receive unpacks the outputs of an element from a tar stream that its instance sends, and replaces the outputs of an
// earlier attempt with them. It reads the stream to its end; an error anywhere in it leaves the earlier outputs as they
// were. An empty archive leaves no folder. It returns the files in the archive's order.
func (r *Results) Receive(ctx context.Context, job string, index int, stream io.Reader) ([]drover.File, error) {
	at, err := folder(job, index)
	if err != nil {
		return nil, err
	}
	files, err := r.receive(ctx, at, whileAsked{ctx, stream})
	if err != nil {
		return nil, fmt.Errorf("receiving the outputs of job %s: %w", job, r.lost(err))
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

// replace replaces the old folder with the new one. A crash between the two renames leaves neither: the attempt is not
// final yet, so its outputs will be sent again.
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

// unpacker unpacks an untrusted archive.
type unpacker struct {
	ctx     context.Context
	into    *os.Root
	left    Limits // what is still allowed
	entries int    // files, folders and links so far
	files   []drover.File
	made    []string // folders
	links   []link   // made last
}

// link is a symbolic link within the folder, and its target.
type link struct{ name, to string }

// maxPadding is how many bytes may follow the archive within its stream.
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
		return errors.Join(err, refuse(n == maxPadding, "the stream continues after the end of its archive"))
	}
	if err := u.listLinks(); err != nil {
		return err
	}
	return u.sync()
}

// mostLinks is how many links that lead to each other are followed, as Linux does.
const mostLinks = 40

// listLinks also lists the targets of links under the links' names, since callers that fetch files one by one get no
// links.
func (u *unpacker) listLinks() error {
	to := make(map[string]string, len(u.links))
	for _, l := range u.links {
		to[l.name] = l.to
	}
	byPath := func(f drover.File, name string) int { return strings.Compare(f.Path, name) }
	files := slices.SortedFunc(slices.Values(u.files), func(a, b drover.File) int { return byPath(a, b.Path) })
	for _, l := range u.links {
		var errno syscall.Errno // of a link that leads nowhere, or in a circle
		if _, err := u.into.Stat(l.name); err != nil && !errors.As(err, &errno) {
			return refuse(true, "the link %.80q points outside the folder through other links", l.name)
		}
		target := l.to
		for n := 0; to[target] != "" && n < mostLinks; n++ {
			target = to[target]
		}
		at, isFile := slices.BinarySearchFunc(files, target, byPath)
		if isFile {
			f := files[at]
			f.Path = l.name
			u.files = append(u.files, f)
			continue
		}
		if target == "." || strings.HasPrefix(l.name, target+"/") {
			continue // it leads to a folder that contains it
		}
		at, _ = slices.BinarySearchFunc(files, target+"/", byPath)
		for ; at < len(files) && strings.HasPrefix(files[at].Path, target+"/"); at++ {
			f := files[at]
			f.Path = l.name + strings.TrimPrefix(f.Path, target)
			u.left.Files--
			u.left.Names -= listed(f.Path)
			if err := cmp.Or(
				refuse(u.left.Files < 0, "too many files are reached through links"),
				refuse(len(f.Path) > u.left.Name, "the name %.40q…, reached through a link, exceeds the limit of %d bytes", f.Path, u.left.Name),
				refuse(u.left.Names < 0, namesTooLong),
			); err != nil {
				return err
			}
			u.files = append(u.files, f)
		}
	}
	return nil
}

const namesTooLong = "the names of the outputs are too long in total"

// listed returns how many bytes a name takes in lists, in which control characters take six each.
func listed(name string) int {
	text, _ := json.Marshal(name)
	return len(text) - len(`""`)
}

// refuse returns an error if bad.
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
	if header.Typeflag == tar.TypeSymlink {
		u.links = append(u.links, link{name, path.Join(path.Dir(name), header.Linkname)})
		return u.into.Symlink(header.Linkname, name)
	}
	mode := fs.FileMode(0o644)
	if header.FileInfo().Mode()&0o111 != 0 {
		mode = 0o755
	}
	f, err := u.into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	hash, size, err := u.write(f, content)
	u.files = append(u.files, drover.File{Path: name, Mode: uint32(mode), Size: size, Hash: hash})
	return err
}

// fewEntries is up to how many files and folders each is synced by itself. The disk takes a millisecond for each, so
// more of them are synced together.
const fewEntries = 100

func (u *unpacker) few() bool { return u.entries <= fewEntries }

func (u *unpacker) write(f *os.File, content io.Reader) (hash string, size int64, err error) {
	if u.entries++; u.few() {
		return fill(u.ctx, f, content)
	}
	hash, size, err = pour(u.ctx, f, content)
	return hash, size, errors.Join(err, f.Close())
}

// folders makes a folder and those above it; each counts against the limit, since a few long names could otherwise make
// millions.
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
	u.entries++
	u.made = append(u.made, name)
	return errors.Join(err, refuse(u.left.Files < 0, tooMany))
}

const tooMany = "there are too many files and folders among the outputs: pack them into an archive"

// admit checks an entry before anything is done with it, and returns its name.
func (u *unpacker) admit(header *tar.Header) (name string, err error) {
	name = path.Clean(header.Name)
	u.left.Bytes -= max(header.Size, 0)
	u.left.Names -= listed(header.Name)
	isLink := header.Typeflag == tar.TypeSymlink
	known := isLink || header.Typeflag == tar.TypeReg || header.Typeflag == tar.TypeDir
	return name, cmp.Or(
		refuse(max(len(header.Name), len(header.Linkname)) > u.left.Name, "the name %.40q… exceeds the limit of %d bytes", header.Name, u.left.Name),
		refuse(!filepath.IsLocal(name), "%.80q is not a valid file name", header.Name),
		refuse(!known, "%.80q is neither a file, nor a folder, nor a symbolic link", header.Name),
		refuse(header.Typeflag != tar.TypeDir && name == ".", "%.80q is not a valid file name", header.Name),
		refuse(isLink && (path.IsAbs(header.Linkname) || !filepath.IsLocal(path.Join(path.Dir(name), header.Linkname))), "the link %.80q points outside the folder", header.Name),
		refuse(!isLink && len(u.links) > 0, "%.80q comes after a link; links must be last in the archive", header.Name),
		refuse(u.left.Files <= 0, tooMany),
		refuse(u.left.Names < 0, namesTooLong),
		refuse(u.left.Bytes < 0, "the files are too large in total"),
	)
}

// sync waits until every name in the new folder is on disk; the files are already.
func (u *unpacker) sync() error {
	if !u.few() {
		return syncAll(u.into)
	}
	for _, folder := range append(u.made, ".") {
		if err := syncFolder(u.into, folder); err != nil {
			return err
		}
	}
	return nil
}
