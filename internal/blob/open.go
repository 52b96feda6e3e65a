package blob

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"drover"
)

// OpenOutput opens a file that Receive has returned. The owner of the folder may have changed it since: its hash shows
// that. KindNotFound: it does not exist, or is not a plain file within the element's folder, wherever its path or a
// link may lead.
func (r *Results) OpenOutput(job string, index int, file drover.File) (io.ReadSeekCloser, error) {
	at, err := folder(job, index)
	if err != nil {
		return nil, err
	}
	none := drover.Errorf(drover.KindNotFound, "job %s has no output %.200q", element(job, index), file.Path)
	if !filepath.IsLocal(file.Path) || path.Clean(file.Path) != file.Path { // it need not be UTF-8 text
		return nil, none
	}
	f, err := r.openWithin(at, file.Path)
	if absent(err) {
		return nil, none
	}
	if err != nil {
		return nil, fmt.Errorf("opening an output of job %s: %w", job, err)
	}
	return f, nil
}

func (r *Results) openWithin(folder, name string) (*os.File, error) {
	within, err := r.root.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer within.Close()
	f, _, err := openPlain(within, name)
	return f, err
}

// LogLimit is the number of bytes kept of an output stream. Of a longer one, half of that is kept at the beginning and
// half at the end, with a line between them: see WriteLog.
func (r *Results) LogLimit() int64 { return r.limits.Log }

// OpenLog opens what is kept of an output stream, and returns its length. An attempt that ends during reading replaces
// the file; the open file stays as it is. KindNotFound: there is none.
func (r *Results) OpenLog(job string, index int, stream string) (io.ReadSeekCloser, int64, error) {
	name, err := logName(job, index, stream)
	if err != nil {
		return nil, 0, err
	}
	f, size, err := openPlain(r.root, name)
	if absent(err) {
		return nil, 0, drover.Errorf(drover.KindNotFound, "job %s has no std%s log", element(job, index), stream)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening a log of job %s: %w", job, err)
	}
	return f, size, nil
}

// OpenAttemptLog opens what is kept of an attempt's output stream, as OpenLog does. KindNotFound: there is none.
func (r *Results) OpenAttemptLog(job string, index, attempt int, stream string) (io.ReadSeekCloser, error) {
	name, err := logName(job, index, stream)
	if err != nil {
		return nil, err
	}
	present, _, err := openPlain(r.root, name) // before reading whose it is: BeginLogs moves it before it says so
	if err != nil && !absent(err) {
		return nil, err
	}
	writer, unknown := r.LogsOf(job, index)
	if err == nil && unknown == nil && writer == attempt {
		return present, nil
	}
	if err == nil {
		present.Close()
	}
	if unknown != nil {
		return nil, unknown
	}
	f, _, err := openPlain(r.root, attemptLog(job, index, attempt, stream))
	if absent(err) {
		return nil, drover.Errorf(drover.KindNotFound, "no std%s of attempt %d of job %s is stored", stream, attempt, element(job, index))
	}
	return f, err
}

// HasLog reports whether an output stream of an attempt is kept.
func (r *Results) HasLog(job string, index, attempt int) bool {
	for _, stream := range []string{Stdout, Stderr} {
		if log, err := r.OpenAttemptLog(job, index, attempt, stream); err == nil {
			log.Close()
			return true
		}
	}
	return false
}

// errNotPlain is the error for something that exists but is not a plain file.
var errNotPlain = errors.New("not a plain file")

// openPlain opens a plain file. It does not wait for a writer if the file is a pipe.
func openPlain(root *os.Root, name string) (*os.File, int64, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotPlain
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// absent reports whether an error of opening means that there is nothing to open, rather than that opening failed. An
// error that is not the kernel's means it too: it is the root's, for a name that leads out of it, or openPlain's.
func absent(err error) bool {
	var errno syscall.Errno
	if err == nil || !errors.As(err, &errno) {
		return err != nil
	}
	return slices.Contains([]syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO}, errno)
}
