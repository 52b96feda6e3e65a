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

// Limits bound the results of one attempt.
type Limits struct {
	Files int   // files and folders among its outputs
	Bytes int64 // of its outputs together
	Name  int   // bytes in the path of one of them
	Names int   // and in all the paths together, which are listed in one answer
	Log   int64 // bytes kept of each output stream
}

// DefaultLimits returns limits that are generous to people and still protect a controller's disk from one job.
func DefaultLimits() Limits {
	return Limits{Files: 20_000, Bytes: 64 << 30, Name: 1024, Names: 4 << 20, Log: 16 << 20}
}

// Results is the folder for the results of a batch's jobs.
type Results struct {
	root   *os.Root
	lock   *os.File
	limits Limits
}

// OpenResults opens the folder at path, or makes it. Results of earlier attempts in it stay until newer ones replace
// them.
func OpenResults(path string, limits Limits) (*Results, error) {
	root, lock, err := openRoot(path, 0o755)
	if err != nil {
		return nil, fmt.Errorf("opening the results in %s: %w", path, err)
	}
	return &Results{root, lock, limits}, nil
}

// Close releases the folder, in which only results remain.
func (r *Results) Close() error {
	return errors.Join(r.root.RemoveAll(partial), r.root.Close(), r.lock.Close())
}

// folder returns the folder for the outputs of an element. Other code checks which characters a job's name may have;
// this only ensures that it is one step down.
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

// Section returns n bytes of a stream from offset on. It is called for the parts that are kept, one after the other.
// Anything beyond n is not read; if there is less, the log is not kept.
type Section func(offset, n int64) (io.Reader, error)

// WriteLog keeps an output stream of size bytes, in place of an earlier attempt's. Of one over the limit it keeps the
// head and the tail, with a line between them about what is missing; it requests only those two. An empty stream leaves
// no file.
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
		return fmt.Errorf("storing the log of job %s: %w", job, r.lost(err))
	}
	return nil
}

// lost returns the error of storing something or, if that is that the folder was removed, says so: the open folder is
// not the one that somebody may make in its place.
func (r *Results) lost(err error) error {
	if _, gone := os.Stat(r.root.Name()); errors.Is(err, fs.ErrNotExist) && errors.Is(gone, fs.ErrNotExist) {
		return drover.Errorf(drover.KindTransient, "the results folder %s was removed; stop Drover, then start or resume it", r.root.Name())
	}
	return err
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
	if offset == 0 { // a reader of an earlier log continues with that
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

// BeginLogs makes an element's logs those of an attempt: if another attempt wrote the present ones, it sets them aside
// under that attempt's number. Repeating it changes nothing, also after a crash in the middle.
func (r *Results) BeginLogs(job string, index, attempt int) error {
	if _, err := folder(job, index); err != nil {
		return err
	}
	writer, err := r.LogsOf(job, index)
	if err != nil || writer == attempt {
		return err
	}
	if err := r.handOver(job, index, writer, attempt); err != nil {
		return fmt.Errorf("setting aside the log of attempt %d of job %s: %w", writer, element(job, index), err)
	}
	return nil
}

// handOver sets the logs of one attempt aside and records the next. It begins by recording the one: without a record,
// an attempt with one stream set aside would count as set aside.
func (r *Results) handOver(job string, index, from, to int) error {
	if err := r.root.MkdirAll(attempts, 0o755); err != nil {
		return err
	}
	if err := r.recordLogsOf(job, index, from); err != nil {
		return err
	}
	for _, stream := range []string{Stdout, Stderr} {
		err := r.root.Rename(path.Join(logs, element(job, index)+"."+stream), attemptLog(job, index, from, stream))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // not if the attempt wrote nothing
			return err
		}
	}
	return r.recordLogsOf(job, index, to)
}

// recordLogsOf durably records what LogsOf returns.
func (r *Results) recordLogsOf(job string, index, attempt int) error {
	temporary, f, err := newPartial(r.root)
	if err != nil {
		return err
	}
	defer r.root.Remove(temporary) // finds nothing once it has been renamed
	if _, _, err := fill(context.Background(), f, strings.NewReader(strconv.Itoa(attempt))); err != nil {
		return err
	}
	if err := r.root.Rename(temporary, latest(job, index)); err != nil {
		return err
	}
	return syncFolder(r.root, attempts)
}

// LogsOf returns the number of the attempt that an element's present logs belong to. Until BeginLogs has recorded one,
// that is the first attempt whose logs are not set aside.
func (r *Results) LogsOf(job string, index int) (attempt int, err error) {
	text, err := r.root.ReadFile(latest(job, index))
	switch {
	case err == nil:
		if attempt, err = strconv.Atoi(string(text)); err != nil {
			return 0, fmt.Errorf("%s does not contain an attempt number", latest(job, index))
		}
		return attempt, nil
	case !absent(err):
		return 0, err
	}
	for attempt = 1; r.isAside(job, index, attempt); attempt++ {
	}
	return attempt, nil
}

func (r *Results) isAside(job string, index, attempt int) bool {
	_, out := r.root.Lstat(attemptLog(job, index, attempt, Stdout))
	_, err := r.root.Lstat(attemptLog(job, index, attempt, Stderr))
	return out == nil || err == nil
}

// Remove removes the results of elements of a job: index -1 for a job that is not an array.
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

// Aside returns how many bytes the logs take that were set aside, of an element's attempts before this one.
func (r *Results) Aside(job string, index, attempt int) (bytes int64) {
	for n := range attempt {
		for _, stream := range []string{Stdout, Stderr} {
			if info, err := r.root.Lstat(attemptLog(job, index, n, stream)); err == nil {
				bytes += info.Size()
			}
		}
	}
	return bytes
}

// attempts is the folder for the logs of all attempts but the last to write any, and for the record of which that is.
const attempts = logs + "/attempts"

func attemptLog(job string, index, attempt int, stream string) string {
	return path.Join(attempts, element(job, index)+"."+strconv.Itoa(attempt)+"."+stream)
}

// latest returns the name of the file with the number of the attempt that an element's present logs belong to.
func latest(job string, index int) string {
	return path.Join(attempts, element(job, index)+".latest.attempt")
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

// element returns the name of a job, or of an element of an array, for logs and messages.
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

// abridge returns a reader of the stream as it is kept.
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

// part is a section of a stream that is not requested before its turn.
type part struct {
	section   Section
	offset, n int64 // of what is still to be read
	r         io.Reader
}

// Read requests the section, if this is the first time, and reads it, never beyond its end and never less.
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
