package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"drover"
)

// journal is an attempt's open journal: the one file with all the runner's records of the attempt, one JSON object per
// line. The daemon and the supervisor both write it: each line is a single appending write, so lines do not mix. While
// it is locked, a supervisor is alive. (It is one file, not five, because ext4 skips over every recently deleted file
// when it creates one: with short jobs that was most of the runner's cost.)
type journal struct{ file *os.File }

// entry is one line of a journal. Besides Time, exactly one field is set.
type entry struct {
	Time    time.Time    `json:"time"`
	Attempt *record      `json:"attempt,omitempty"` // by the daemon, first
	Begun   *claim       `json:"begun,omitempty"`   // by the supervisor, at most once
	Stop    *stopOrder   `json:"stop,omitempty"`    // by a daemon
	Log     string       `json:"log,omitempty"`     // by the supervisor, for people
	Exit    *drover.Exit `json:"exit,omitempty"`    // by the supervisor, or by a daemon if there was none
}

// record is what a later daemon needs about an attempt.
type record struct {
	ID      drover.AttemptID `json:"id"`
	Outputs []string         `json:"outputs,omitempty"`
	Place   sandbox          `json:"place,omitzero"`
	Store   string           `json:"store,omitempty"` // wire.Start.Store
	Proof   string           `json:"proof,omitempty"` // wire.Start.Proof
}

// claim records that a supervisor has begun the attempt.
type claim struct {
	Boot string `json:"boot"`
	PID  int    `json:"pid"`
}

// stopOrder is an order to end an attempt.
type stopOrder struct {
	Grace time.Duration `json:"grace"`
	Cause string        `json:"cause,omitempty"` // empty: drover.CauseStopped
}

// why returns the error of a start that the order has called off.
func (s stopOrder) why() error {
	if s.Cause == drover.CauseInterrupted {
		return errInterrupted
	}
	return errStopped
}

// history is a journal's content.
type history struct {
	attempt *record
	begun   *claim
	stops   []stopOrder
	log     []string // the last lines
	exit    *drover.Exit
}

const (
	// keepLog is how many log lines a history keeps.
	keepLog = 5
	// maxJournal is how much of a journal is read.
	maxJournal = 16 << 20
	// maxLog is the size at which a journal takes no more log lines: a supervisor may go on for months trying to end a
	// command.
	maxLog = maxJournal / 2
)

// openJournal opens an attempt's journal to read and append.
func openJournal(path string) (journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	return journal{f}, err
}

// lockJournal opens a journal and takes its lock, see lockFile.
func lockJournal(path string, wait bool) (journal, error) {
	f, err := lockFile(path, os.O_RDWR|os.O_APPEND, wait)
	return journal{f}, err
}

// Close releases the lock, if this journal has it.
func (j journal) Close() error { return j.file.Close() }

func (j journal) append(e entry) error {
	e.Time = time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	// A newline comes first, too, so that a line that a full disk cut short does not spoil the next.
	if _, err := j.file.Write(fmt.Appendf(nil, "\n%s\n", line)); err != nil {
		return fmt.Errorf("writing the attempt's journal: %w", err)
	}
	return nil
}

// logf writes a line for people, if there is room. It ignores errors.
func (j journal) logf(format string, args ...any) {
	if info, err := j.file.Stat(); err != nil || info.Size() > maxLog {
		return
	}
	_ = j.append(entry{Log: limit(fmt.Sprintf(format, args...))})
}

// read returns the journal's present content. It ignores an incomplete line, which a full disk or a VM that lost power
// leaves.
func (j journal) read() (h history, err error) {
	text, err := io.ReadAll(io.NewSectionReader(j.file, 0, maxJournal))
	if err != nil {
		return h, fmt.Errorf("reading the attempt's journal: %w", err)
	}
	for line := range bytes.Lines(text) {
		var e entry
		if json.Unmarshal(line, &e) == nil {
			h.add(e)
		}
	}
	return h, nil
}

func (h *history) add(e entry) {
	switch {
	case e.Attempt != nil:
		h.attempt = e.Attempt
	case e.Begun != nil:
		h.begun = e.Begun
	case e.Stop != nil:
		h.stops = append(h.stops, *e.Stop)
	case e.Exit != nil:
		h.exit = e.Exit
	case e.Log != "":
		h.log = append(h.log[max(0, len(h.log)-keepLog+1):], e.Log)
	}
}

// begin claims the attempt for this process, which must hold the lock. It succeeds at most once per attempt.
func (j journal) begin(boot string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(j.file.Fd()), &st); err != nil {
		return err
	}
	h, err := j.read()
	if err != nil {
		return err
	}
	if st.Nlink == 0 || h.begun != nil || h.exit != nil {
		return errAbandoned
	}
	return j.append(entry{Begun: &claim{boot, os.Getpid()}})
}

// errAbandoned means that an attempt may no longer begin.
var errAbandoned = errors.New("the attempt was abandoned or has already begun")
