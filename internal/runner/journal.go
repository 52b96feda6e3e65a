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

// journal is an attempt's journal, open and at its end. It is the one file in which all that the runner knows of an
// attempt is written, one JSON object a line, by daemon and supervisor alike: each line is a single appending write, so
// none disturbs another. Its lock says that a supervisor lives. (One file, not five, because ext4 looks past every file
// lately deleted when it makes a new one: with short jobs that was most of what the runner cost.)
type journal struct{ file *os.File }

// entry is one line of a journal. But for the time, exactly one field is set.
type entry struct {
	Time    time.Time    `json:"time"`
	Attempt *record      `json:"attempt,omitempty"` // by the daemon, first
	Begun   *claim       `json:"begun,omitempty"`   // by the supervisor, at most once
	Stop    *stopOrder   `json:"stop,omitempty"`    // by a daemon
	Log     string       `json:"log,omitempty"`     // by the supervisor, for people
	Exit    *drover.Exit `json:"exit,omitempty"`    // by the supervisor, or by a daemon if there was none
}

// record is what a daemon must know of an attempt.
type record struct {
	ID      drover.AttemptID `json:"id"`
	Outputs []string         `json:"outputs,omitempty"`
	Place   sandbox          `json:"place,omitzero"`
	Store   string           `json:"store,omitempty"` // as wire.Start has it
	Proof   string           `json:"proof,omitempty"` // likewise
}

// claim is the supervisor's word that the attempt is begun.
type claim struct {
	Boot string `json:"boot"`
	PID  int    `json:"pid"`
}

// stopOrder is the wish to end an attempt.
type stopOrder struct {
	Grace time.Duration `json:"grace"`
	Cause string        `json:"cause,omitempty"` // empty: drover.CauseStopped
}

// why is the error of a start that the wish has called off.
func (s stopOrder) why() error {
	if s.Cause == drover.CauseInterrupted {
		return errInterrupted
	}
	return errStopped
}

// history is what a journal says.
type history struct {
	attempt *record
	begun   *claim
	stops   []stopOrder
	log     []string // the last lines
	exit    *drover.Exit
}

// keepLog is how many lines of its log a history has.
const keepLog = 5

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
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the attempt's journal: %w", err)
	}
	return nil
}

// logf notes something for people. That it cannot be noted stops nothing.
func (j journal) logf(format string, args ...any) {
	_ = j.append(entry{Log: limit(fmt.Sprintf(format, args...))})
}

// read returns all that the journal says by now. A line that is not whole, left by a VM that lost its power, says
// nothing.
func (j journal) read() (h history, err error) {
	text, err := io.ReadAll(io.NewSectionReader(j.file, 0, 1<<24))
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

// begin claims the attempt, once and for all, for this process, which holds the lock.
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

// errAbandoned says that an attempt may not be begun any more.
var errAbandoned = errors.New("the attempt was abandoned or has already begun")
