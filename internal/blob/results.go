package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"drover"
)

// Limits bound what one attempt may leave.
type Limits struct {
	Files int   // files and folders among its outputs
	Bytes int64 // of its outputs together
	Name  int   // bytes in the path of one of them
	Names int   // and of all of them together, which are listed in one answer
	Log   int64 // bytes kept of each output stream
}

// DefaultLimits are generous to people and still keep a controller's disk from one job.
func DefaultLimits() Limits {
	return Limits{Files: 20_000, Bytes: 64 << 30, Name: 1024, Names: 4 << 20, Log: 16 << 20}
}

// Results is the folder for what the jobs of a batch leave.
type Results struct {
	root   *os.Root
	lock   *os.File
	limits Limits
}

// OpenResults opens the folder at path, or makes it. Results of earlier attempts in it stay until newer ones take their
// places.
func OpenResults(path string, limits Limits) (*Results, error) {
	root, lock, err := openRoot(path, 0o755)
	if err != nil {
		return nil, fmt.Errorf("opening the results in %s: %w", path, err)
	}
	return &Results{root, lock, limits}, nil
}

// Close lets go of the folder, in which only results remain.
func (r *Results) Close() error {
	return errors.Join(r.root.RemoveAll(partial), r.root.Close(), r.lock.Close())
}

// folder is where the outputs of an element are. The names of jobs are checked, but what they may hold is decided
// elsewhere: here it matters only that they are one step down.
func folder(job string, index int) (string, error) {
	if !fs.ValidPath(job) || path.Base(job) != job || job == "." || job == partial || job == logs {
		return "", drover.Errorf(drover.KindInvalid, "%.80q cannot be the name of a job's folder", job)
	}
	if index < 0 {
		return job, nil
	}
	return path.Join(job, strconv.Itoa(index)), nil
}

const logs = "logs"

// The output streams, by the endings of their files.
const (
	Stdout = "out"
	Stderr = "err"
)

// Has reports whether there are logs or outputs of an element.
func (r *Results) Has(job string, index int) bool {
	at, err := folder(job, index)
	if err != nil {
		return false
	}
	for _, name := range []string{at, path.Join(logs, element(job, index)+"."+Stdout), path.Join(logs, element(job, index)+"."+Stderr)} {
		if _, err := r.root.Stat(name); err == nil {
			return true
		}
	}
	return false
}

// Section gives n bytes of a stream from offset on. It is asked for the parts that are kept, one after the other. What
// it gives beyond n is not read; if it gives less, the log is not kept.
type Section func(offset, n int64) (io.Reader, error)

// WriteLog keeps an output stream of size bytes, in place of an earlier attempt's. Of one over the limit it keeps head
// and tail, with a line between them that says what is missing; only those two are asked for. An empty stream leaves no
// file.
func (r *Results) WriteLog(ctx context.Context, job string, index int, stream string, size int64, section Section) error {
	name, err := logName(job, index, stream)
	if err != nil {
		return err
	}
	if size == 0 {
		err = r.root.RemoveAll(name)
	} else {
		err = r.replaceLog(ctx, name, r.abridge(size, section))
	}
	if err != nil {
		return fmt.Errorf("keeping the log of job %s: %w", job, err)
	}
	return nil
}

// GrowLog writes a piece of a log at an offset, while the attempt runs; offset 0 starts the log anew. WriteLog replaces
// it when the attempt has ended.
func (r *Results) GrowLog(job string, index int, stream string, offset int64, piece []byte) error {
	name, err := logName(job, index, stream)
	if err != nil {
		return err
	}
	if err := r.root.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	if offset == 0 { // who reads an earlier one goes on with that
		if err := r.root.RemoveAll(name); err != nil {
			return err
		}
	}
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(piece, offset)
	return errors.Join(err, f.Close())
}

// KeepLogs sets the logs that there are of an element, which are of an earlier attempt, aside under that attempt's
// number, so that those of a later one can take their places. Doing it again changes nothing.
func (r *Results) KeepLogs(job string, index, attempt int) error {
	if err := r.root.MkdirAll(attempts, 0o755); err != nil {
		return err
	}
	for _, stream := range []string{Stdout, Stderr} {
		name, err := logName(job, index, stream)
		if err != nil {
			return err
		}
		kept := attemptLog(job, index, attempt, stream)
		if _, err := r.root.Lstat(kept); err == nil {
			continue
		}
		if err = r.root.Rename(name, kept); absent(err) {
			err = r.root.WriteFile(kept, nil, 0o644) // it wrote nothing
		}
		if err != nil {
			return fmt.Errorf("keeping the log of attempt %d of job %s: %w", attempt, job, err)
		}
	}
	return nil
}

// Remove takes away all that elements of a job have left: index -1 for a job that is no array.
func (r *Results) Remove(job string, indexes []int) error {
	at, err := folder(job, -1)
	if err != nil {
		return err
	}
	errs := []error{r.root.RemoveAll(at)}
	mine := make(map[string]bool, len(indexes))
	for _, index := range indexes {
		name := element(job, index)
		mine[name] = true
		for _, stream := range []string{Stdout, Stderr} {
			errs = append(errs, r.root.RemoveAll(path.Join(logs, name+"."+stream)))
		}
	}
	older, err := fs.ReadDir(r.root.FS(), attempts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, entry := range older {
		name := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name())) // without the stream
		if mine[strings.TrimSuffix(name, path.Ext(name))] {
			errs = append(errs, r.root.Remove(path.Join(attempts, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing the results of job %s: %w", job, err)
	}
	return nil
}

// Kept is how many bytes the logs take that were set aside of these attempts of an element.
func (r *Results) Kept(job string, index int, attempts []int) (bytes int64) {
	for _, n := range attempts {
		for _, stream := range []string{Stdout, Stderr} {
			if info, err := r.root.Lstat(attemptLog(job, index, n, stream)); err == nil {
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// attempts is the folder for the logs of attempts that were not the last.
const attempts = logs + "/attempts"

func attemptLog(job string, index, attempt int, stream string) string {
	return path.Join(attempts, element(job, index)+"."+strconv.Itoa(attempt)+"."+stream)
}

func logName(job string, index int, stream string) (string, error) {
	if _, err := folder(job, index); err != nil {
		return "", err
	}
	if stream != Stdout && stream != Stderr {
		return "", drover.Errorf(drover.KindInvalid, "%.40q is not an output stream", stream)
	}
	return path.Join(logs, element(job, index)+"."+stream), nil
}

// element is a job, or an element of an array, as logs and messages name it.
func element(job string, index int) string {
	if index < 0 {
		return job
	}
	return job + "." + strconv.Itoa(index)
}

func (r *Results) replaceLog(ctx context.Context, name string, content io.Reader) error {
	if err := r.root.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	temporary, f, err := newPartial(r.root)
	if err != nil {
		return err
	}
	defer r.root.Remove(temporary) // finds nothing once it has been renamed
	if _, _, err := fill(ctx, f, content); err != nil {
		return err
	}
	if err := r.root.Chmod(temporary, 0o644); err != nil {
		return err
	}
	if err := r.root.Rename(temporary, name); err != nil {
		return err
	}
	return syncFolder(r.root, logs)
}

// abridge is the stream as it is kept.
func (r *Results) abridge(size int64, section Section) io.Reader {
	if size <= r.limits.Log {
		return &part{section: section, n: size}
	}
	head := r.limits.Log / 2
	tail := r.limits.Log - head
	return io.MultiReader(
		&part{section: section, n: head},
		strings.NewReader(fmt.Sprintf("\n[drover: %d bytes left out]\n", size-head-tail)),
		&part{section: section, offset: size - tail, n: tail},
	)
}

// part is a section of a stream that is not asked for before its turn has come.
type part struct {
	section   Section
	offset, n int64 // of what is still to be read
	r         io.Reader
}

// Read asks for the section, if this is the first time, and reads it, never over its end and never less.
func (p *part) Read(b []byte) (n int, err error) {
	if p.n <= 0 {
		return 0, io.EOF
	}
	if p.r == nil {
		if p.r, err = p.section(p.offset, p.n); err != nil {
			return 0, err
		}
	}
	n, err = p.r.Read(b[:min(int64(len(b)), p.n)])
	p.n -= int64(n)
	if err == io.EOF && p.n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
