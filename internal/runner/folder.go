package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"drover"
)

// folder is an attempt's folder. In it:
//
//	work/            the command's working folder
//	stdout, stderr   its output
//	attempt.json     what the daemon must remember of it; once it is there, the attempt may be begun
//	lock             held by the supervisor as long as it lives; once begun it holds the claim
//	stop             a pipe to the supervisor, see stopOrder
//	supervisor.log   what the supervisor did
//	exit.json        how it ended
type folder string

// attemptsFolder holds the attempts' folders.
const attemptsFolder = "attempts"

func (f folder) path(name string) string { return filepath.Join(string(f), name) }
func (f folder) work() string            { return f.path("work") }

// record is what the daemon must remember of an attempt.
type record struct {
	ID      drover.AttemptID `json:"id"`
	Outputs []string         `json:"outputs,omitempty"`
}

// claim is the supervisor's word that the attempt is begun.
type claim struct {
	Boot string `json:"boot"`
	PID  int    `json:"pid"`
}

// result is the content of exit.json.
type result struct {
	Boot string      `json:"boot"`
	Exit drover.Exit `json:"exit"`
}

// errAbandoned says that an attempt may not be begun any more.
var errAbandoned = errors.New("the attempt was abandoned before it began")

// create makes an empty attempt folder, which nobody may begin yet.
func (f folder) create() error {
	if err := os.Mkdir(string(f), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(f.work(), 0o700); err != nil {
		return err
	}
	if err := unix.Mkfifo(f.path("stop"), 0o600); err != nil {
		return fmt.Errorf("making the stop pipe: %w", err)
	}
	for _, name := range []string{"lock", "stdout", "stderr"} {
		if err := os.WriteFile(f.path(name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// allow lets the attempt be begun from here on.
func (f folder) allow(r record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeAtomically(f.path("attempt.json"), text)
}

func (f folder) record() (r record, err error) { return r, readJSON(f.path("attempt.json"), &r) }

// begin takes the attempt for this process, once and for all. The file returned holds its lock.
func (f folder) begin(boot string) (*os.File, error) {
	lock, err := lockFile(f.path("lock"), os.O_RDWR, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errAbandoned
	}
	if err != nil {
		return nil, err
	}
	if err := writeClaim(lock, claim{boot, os.Getpid()}); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

func writeClaim(lock *os.File, c claim) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(lock.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink == 0 || st.Size > 0 {
		return errAbandoned
	}
	return json.NewEncoder(lock).Encode(c)
}

// state is what an attempt's folder says once no supervisor holds it.
type state int

const (
	unbegun state = iota
	ended         // exit.json is there and of this boot
	lost          // begun, and no trustworthy result
)

// settle waits until no supervisor holds the attempt, or returns EWOULDBLOCK at once if it need not wait, and says what became of it.
// An attempt found unbegun can never be begun afterwards.
func (f folder) settle(boot string, wait bool) (state, drover.Exit, error) {
	lock, err := lockFile(f.path("lock"), os.O_RDWR, wait)
	if errors.Is(err, fs.ErrNotExist) {
		return unbegun, drover.Exit{}, nil
	}
	if err != nil {
		return unbegun, drover.Exit{}, err
	}
	defer lock.Close()
	var r result
	if err := readJSON(f.path("exit.json"), &r); err == nil && r.Boot == boot {
		return ended, r.Exit, nil
	}
	if info, err := lock.Stat(); err != nil || info.Size() > 0 {
		return lost, drover.Exit{}, err
	}
	return unbegun, drover.Exit{}, os.Remove(f.path("lock"))
}

// finish writes how the attempt ended.
func (f folder) finish(boot string, e drover.Exit) error {
	text, err := json.Marshal(result{boot, e})
	if err != nil {
		return err
	}
	return writeAtomically(f.path("exit.json"), text)
}

// addOutput fills in what the output files say.
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
	text, err := io.ReadAll(io.NewSectionReader(f, from, n))
	if err != nil {
		return "", 0, err
	}
	return validTail(text, from > 0), info.Size(), nil
}

// validTail makes text valid UTF-8 without making it longer. If it was cut at its beginning, so may have been its first character.
func validTail(text []byte, cut bool) string {
	for i := 0; cut && i < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	return strings.ToValidUTF8(string(text), "?")
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// stopOrder is what the daemon writes into an attempt's stop pipe, one JSON object a line.
type stopOrder struct {
	Grace time.Duration `json:"grace"`
}

// stop tells the attempt's supervisor to end it. ENXIO if no supervisor listens.
func (f folder) stop(grace time.Duration) error {
	pipe, err := os.OpenFile(f.path("stop"), os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(pipe).Encode(stopOrder{grace}), pipe.Close())
}
