package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"drover"
)

// folder is an attempt's folder. In it:
//
//	journal          the runner's records of it; once it exists, the attempt may begin
//	work/            the command's working folder
//	stdout, stderr   its output
//	told/notice      the cloud's notice, if it is reclaiming the instance
//	told/pipe        the pipe on which its container's first process reports, if it has one
//
// Of these, a container can write work/ and read told/. The rest stays out of its reach, since the runner would follow
// a link put in a file's place.
type folder string

// attemptsFolder holds the attempts' folders.
const attemptsFolder = "attempts"

func (f folder) path(name string) string { return filepath.Join(string(f), name) }
func (f folder) work() string            { return f.path("work") }
func (f folder) journal() string         { return f.path("journal") }
func (f folder) told() string            { return f.path("told") }
func (f folder) notice() string          { return filepath.Join(f.told(), "notice") }
func (f folder) pipe() string            { return filepath.Join(f.told(), "pipe") }

// create makes an empty attempt folder. The attempt cannot begin until allow.
func (f folder) create() error {
	if err := os.Mkdir(string(f), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(f.work(), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(f.path("stdout"), nil, 0o600), os.WriteFile(f.path("stderr"), nil, 0o600))
}

// makeTold makes the folder told/, unless it exists. Most attempts never need it.
func (f folder) makeTold() error { return os.MkdirAll(f.told(), 0o700) }

// allow lets the attempt begin from now on.
func (f folder) allow(r record) error {
	file, err := os.OpenFile(f.journal(), os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(journal{file}.append(entry{Attempt: &r}), file.Close())
}

// history reads the attempt's journal.
func (f folder) history() (history, error) {
	j, err := openJournal(f.journal())
	if err != nil {
		return history{}, err
	}
	defer j.Close()
	return j.read()
}

// begin claims the attempt for this process. The journal returned holds its lock.
func (f folder) begin(boot string) (journal, error) {
	j, err := lockJournal(f.journal(), true)
	if errors.Is(err, fs.ErrNotExist) {
		return j, errAbandoned
	}
	if err != nil {
		return j, err
	}
	if err := j.begin(boot); err != nil {
		j.Close()
		return j, err
	}
	return j, nil
}

// state is an attempt's state by its folder, when no supervisor holds it.
type state int

const (
	unbegun state = iota
	ended         // it has a result that can be trusted
	lost          // begun, without such a result
)

// settle waits until no supervisor holds the attempt and returns its state. If wait is false and a supervisor holds it,
// settle returns EWOULDBLOCK at once. An attempt found unbegun can never begin afterwards.
func (f folder) settle(boot string, wait bool) (state, history, error) {
	j, err := lockJournal(f.journal(), wait)
	if errors.Is(err, fs.ErrNotExist) {
		return unbegun, history{}, nil
	}
	if err != nil {
		return unbegun, history{}, err
	}
	defer j.Close()
	h, err := j.read()
	switch {
	case err != nil:
		return lost, h, err
	case h.exit != nil && (h.begun == nil || h.begun.Boot == boot || h.exit.Cause == drover.CauseLost):
		return ended, h, nil
	case h.begun != nil:
		return lost, h, nil
	}
	return unbegun, h, os.Remove(f.journal())
}

// finish writes how the attempt ended, in place of a supervisor.
func (f folder) finish(e drover.Exit) error {
	j, err := openJournal(f.journal())
	if err != nil {
		return err
	}
	return errors.Join(j.append(entry{Exit: &e}), j.Close())
}

// stop has the attempt's supervisor end it. The order is written before the journal is read for a supervisor, and a
// supervisor reads the orders after it has written its claim, so one always sees the other.
func (f folder) stop(order stopOrder) error {
	j, err := openJournal(f.journal())
	if err != nil {
		return err
	}
	defer j.Close()
	if err := j.append(entry{Stop: &order}); err != nil {
		return err
	}
	h, err := j.read()
	if err != nil || h.begun == nil {
		return err
	}
	return j.poke(h.begun.PID)
}

// poke makes a live supervisor read its journal. While the lock is held the pid is the supervisor's, and the handle
// cannot come to mean another process.
func (j journal) poke(pid int) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(handle)
	if unix.Flock(int(j.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK {
		return nil
	}
	return unix.PidfdSendSignal(handle, pokeSignal, nil, 0)
}

// pokeSignal makes a supervisor read its journal.
const pokeSignal = unix.SIGUSR1

// addOutput fills in the ends and lengths of the output files.
func (f folder) addOutput(e *drover.Exit) error {
	var errOut, errErr error
	e.Stdout, e.StdoutLen, errOut = tail(f.path("stdout"), drover.TailBytes)
	e.Stderr, e.StderrLen, errErr = tail(f.path("stderr"), drover.TailBytes)
	return errors.Join(errOut, errErr)
}

// tail returns the last bytes of a file, at most n, as valid UTF-8, and the file's size.
func tail(path string, n int64) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	from := max(0, info.Size()-n)
	text, err := io.ReadAll(io.NewSectionReader(f, from, min(n, info.Size())))
	if err != nil {
		return "", 0, err
	}
	return validTail(text, from > 0), info.Size(), nil
}

// validTail makes text valid UTF-8, and shorter if it was not. If the text was cut at its beginning, its first
// character may be incomplete.
func validTail(text []byte, cut bool) string {
	for i := 0; cut && i < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	valid := strings.ToValidUTF8(string(text), "?")
	if len(valid) == len(text) && !utf8.Valid(text) {
		// A tail as long as its stream is taken for the whole stream, which this is not.
		valid = strings.ToValidUTF8(string(text), "")
	}
	return valid
}
