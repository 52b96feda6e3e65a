package runner

import (
	"archive/tar"
	"bufio"
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

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/wire"
)

const (
	// maxOutputs and maxOutputBytes bound what one attempt may send back.
	maxOutputs     = 20_000
	maxOutputBytes = 64 << 30
	// maxSeen bounds the entries of a folder searched for outputs: they are sorted in memory.
	maxSeen = 10 * maxOutputs
	// maxPatterns bounds the output patterns of a job.
	maxPatterns = 1000
)

// checkPatterns refuses output patterns that are malformed or lead outside the working folder.
func checkPatterns(patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("%d output patterns exceed the limit of %d", len(patterns), maxPatterns)
	}
	for _, p := range patterns {
		if !filepath.IsLocal(p) || !doublestar.ValidatePattern(p) {
			return fmt.Errorf("output %q is not a pattern for files within the working folder", p)
		}
		if drover.Alternatives(p) > drover.MaxAlternatives {
			return fmt.Errorf("output %.80q has braces that expand to more than %d patterns", p, drover.MaxAlternatives)
		}
	}
	return nil
}

// getOutputs sends the attempt's outputs; an attempt that never ran may have none. The final reply lists what was left
// out on purpose; anything else missing makes the outputs incomplete.
func (b bulk) getOutputs(r wire.Request) error {
	a, err := b.d.find(r.ID)
	if err != nil {
		return b.refuse(err)
	}
	root, patterns, err := a.folder.outputs()
	if root != nil {
		defer root.Close()
	}
	if err != nil && b.d.hasRun(a) { // otherwise its folder could not be made, for example because the disk was full
		return b.refuse(err)
	}
	if err := b.lines.Write(wire.Reply{}); err != nil {
		return err
	}
	c, err := b.sendOutputs(root, a.sandbox.UID, patterns)
	if err != nil {
		return err
	}
	return b.lines.Write(c.reply())
}

// outputs returns an attempt's output patterns, and the folder in which they match: nil if the job has removed it.
// It may return a folder with an error.
func (f folder) outputs() (root *os.Root, patterns []string, err error) {
	root, err = os.OpenRoot(f.work())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	// A journal that is read only now shows that the attempt's whole folder has not been removed meanwhile.
	h, err := f.history()
	if err == nil && h.attempt == nil {
		err = errors.New("the attempt's journal does not list its outputs")
	}
	if err != nil {
		return root, nil, err
	}
	return root, h.attempt.Outputs, nil
}

// sendOutputs returns an error only if the channel breaks.
func (b bulk) sendOutputs(root *os.Root, owner int, patterns []string) (*collector, error) {
	chunks := wire.ChunkWriter{W: b.conn}
	buffer := bufio.NewWriterSize(chunks, 64<<10)
	c := &collector{root: root, owner: owner, tar: tar.NewWriter(buffer), seen: make(map[string]bool), absent: make(map[string]bool)}
	links := make(map[int][]string) // of patterns that match nothing else that is sent
	for i, pattern := range patterns {
		if root == nil {
			c.unmatched = append(c.unmatched, i)
			continue
		}
		matched, linked, err := c.collect(path.Clean(pattern))
		if c.err == nil {
			c.err = err
		}
		if c.err != nil {
			break
		}
		if !matched {
			c.unmatched, links[i] = append(c.unmatched, i), linked
		}
	}
	if c.err == nil {
		c.err = c.addLinks()
	}
	c.unmatched = slices.DeleteFunc(c.unmatched, func(i int) bool {
		return slices.ContainsFunc(links[i], func(name string) bool { return !c.absent[name] })
	})
	if c.err == nil {
		c.err = c.tar.Close()
	}
	return c, errors.Join(buffer.Flush(), chunks.Close())
}

// collector writes what matches an attempt's output patterns to a tar stream: regular files, folders, and after them
// the symbolic links whose targets are sent too. A link to another file in the working folder is sent as that file;
// anything else is left out and reported. All access is through root, which no link can escape.
type collector struct {
	root      *os.Root
	owner     int // only this user's files are sent; 0: all files. Otherwise a job could have root read a file for it through a hard link.
	tar       *tar.Writer
	seen      map[string]bool
	links     []string // symbolic links, to be added last
	bytes     int64
	absent    map[string]bool // what is left out
	leftOut   []string        // what people are told of it
	unmatched []int           // indexes of patterns that matched nothing that is sent
	err       error           // why the outputs are incomplete
}

// reply reports whether the outputs are complete, and what was left out.
func (c *collector) reply() wire.Reply {
	r := wire.Reply{Size: c.bytes, LeftOut: c.leftOut, Unmatched: c.unmatched}
	if c.err != nil {
		r.Error = limit(c.err.Error())
	}
	return r
}

// watched is the file system that a pattern is matched in. The search skips what it cannot read; watched records it as
// an error.
type watched struct {
	fs.ReadLinkFS
	c *collector
}

// rootFiles makes a root a file system. Unlike root.FS, it accepts names that are not valid UTF-8.
type rootFiles struct{ *os.Root }

// Open opens a file. If the name is a pipe, it does not wait for a writer.
func (r rootFiles) Open(name string) (fs.File, error) {
	return r.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// ReadLink reads a symbolic link.
func (r rootFiles) ReadLink(name string) (string, error) { return r.Readlink(name) }

// errCrowded means that a folder has too many entries to search.
var errCrowded = errors.New("a folder has too many entries to search")

// ReadDir lists a folder by name.
func (r rootFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := r.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxSeen + 1)
	if len(entries) > maxSeen {
		return nil, fmt.Errorf("%w: %d", errCrowded, maxSeen)
	}
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// saw marks the outputs incomplete if a requested file exists but cannot be read.
func (w watched) saw(name string, err error) {
	unreadable := errors.Is(err, errCrowded) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
	if unreadable && w.c.err == nil {
		w.c.err = fmt.Errorf("looking for outputs in %q: %w", name, err)
	}
}

// Open opens a file.
func (w watched) Open(name string) (fs.File, error) {
	f, err := w.ReadLinkFS.Open(name)
	w.saw(name, err)
	return f, err
}

// Stat describes the file that a name leads to, or a link that leads to none within the folder, so that it matches.
func (w watched) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(w.ReadLinkFS, name)
	w.saw(name, err)
	if err != nil {
		if link, wrong := w.Lstat(name); wrong == nil && link.Mode().Type() == fs.ModeSymlink {
			return link, nil
		}
	}
	return info, err
}

// ReadDir lists a folder.
func (w watched) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.ReadLinkFS, name)
	w.saw(name, err)
	return entries, err
}

// leaveOut records that something which matched is not sent.
func (c *collector) leaveOut(name, why string) {
	const most = 20
	c.absent[name] = true
	switch len(c.leftOut) {
	case most:
		c.leftOut = append(c.leftOut, "and more")
	case most + 1:
	default:
		c.leftOut = append(c.leftOut, limit(fmt.Sprintf("%q: %s", name, why)))
	}
}

// collect adds what matches the pattern, with everything in matching folders. It reports whether anything that is not a
// link matched and is sent, and otherwise which links matched.
func (c *collector) collect(pattern string) (matched bool, links []string, err error) {
	files := watched{rootFiles{c.root}, c}
	add := func(name string, kind fs.FileMode) error {
		err := c.add(name)
		switch {
		case matched || name == "." || c.absent[name]:
		case kind == fs.ModeSymlink:
			links = append(links, name)
		default:
			matched, links = true, nil
		}
		return err
	}
	err = doublestar.GlobWalk(files, pattern, func(match string, _ fs.DirEntry) error {
		// WalkDir would follow a link at its root.
		if info, err := c.root.Lstat(match); err == nil && !info.IsDir() {
			return add(match, info.Mode().Type())
		}
		return fs.WalkDir(files, match, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("reading output %q: %w", name, err)
			}
			if entry.IsDir() && c.seen[name] {
				matched = matched || name != "."
				return fs.SkipDir
			}
			return add(name, entry.Type())
		})
	}, doublestar.WithNoFollow())
	return matched, links, err
}

// add writes one file or folder, once. Links wait for the end.
func (c *collector) add(name string) error {
	if c.seen[name] {
		return nil
	}
	if len(c.seen) == maxOutputs {
		return fmt.Errorf("there are more than %d files and folders among the outputs: pack them into an archive", maxOutputs)
	}
	c.seen[name] = true
	info, err := c.root.Lstat(name)
	switch {
	case err != nil:
		return fmt.Errorf("reading output %q: %w", name, err)
	case info.IsDir():
		return c.addFolder(name, info)
	case info.Mode().IsRegular():
		return c.addFile(name)
	case info.Mode().Type() == fs.ModeSymlink:
		c.links = append(c.links, name)
		return nil
	}
	c.leaveOut(name, kindOf(info.Mode()))
	return nil
}

// kindOf names the type of what is not a file, folder or link.
func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

// addLinks writes the links: as links if their targets are sent too, else as the files that they lead to.
func (c *collector) addLinks() error {
	for _, name := range c.links {
		target, err := c.root.Readlink(name)
		if err != nil {
			return fmt.Errorf("reading output %q: %w", name, err)
		}
		info, err := c.root.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ELOOP):
			c.leaveOut(name, "a broken link")
		case err != nil:
			c.leaveOut(name, "a link that points outside the job's folder")
		case c.seen[path.Join(path.Dir(name), target)] && (info.IsDir() || info.Mode().IsRegular()):
			err := c.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
			if err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if err := c.addFile(name); err != nil {
				return err
			}
		case info.IsDir():
			c.leaveOut(name, "a link to a folder that no pattern matches")
		default:
			c.leaveOut(name, "a link to "+kindOf(info.Mode()))
		}
	}
	return nil
}

func (c *collector) addFolder(name string, info fs.FileInfo) error {
	if name == "." {
		return nil
	}
	return c.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()})
}

func (c *collector) addFile(name string) error {
	// A job may have replaced the file by a pipe since: opening it must not wait for a writer.
	f, err := c.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("reading output %q: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("reading output %q: %w", name, err)
	}
	if c.owner != 0 && info.Sys().(*syscall.Stat_t).Uid != uint32(c.owner) {
		c.leaveOut(name, "a file that another user owns")
		return nil
	}
	if c.bytes += info.Size(); c.bytes > maxOutputBytes {
		return fmt.Errorf("the outputs are larger than %d bytes", int64(maxOutputBytes))
	}
	err = c.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()})
	if err != nil {
		return err
	}
	if _, err := io.CopyN(c.tar, f, info.Size()); err != nil {
		return fmt.Errorf("reading output %q: %w", name, err)
	}
	return nil
}
