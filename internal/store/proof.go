package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"drover"
	"drover/internal/atomicfile"
)

// proof is a note, in a file beside the records, of how far they have come: records that lag behind it are an older
// copy that replaced them. Begin creates it, and it follows every change after that is on disk and before it is
// acknowledged, so whatever is done because of a change is done after the note has it. The note is overwritten in
// place without waiting for the disk: the kernel has it if the process is killed, and after a power failure it may be
// older than the records, which proves nothing false.
//
// A copy of the note that is restored together with the records reveals nothing. But then its file was created or
// changed long after the time in it, and no backup can set a file's change time.
type proof struct {
	path string

	mu   sync.Mutex
	file *os.File // nil: none is kept; guarded by mu
	at   mark     // the note's content; guarded by mu
}

// mark is how far records have come.
type mark struct {
	Nonce    string    `json:"nonce"`
	Changes  int64     `json:"changes"`
	Job      int64     `json:"job"`      // the last numbers that were assigned
	Instance int64     `json:"instance"` //
	Attempt  int64     `json:"attempt"`  // only of attempts after a leap, as State.LastAttempt
	Written  time.Time `json:"written"`
}

const (
	noteSize = 256 // bytes, so that it is within one sector of any disk
	// copyGap is how much later than the time in it a note's file may have changed without being a copy: the kernel may
	// write the two to disk this far apart.
	copyGap = time.Minute
)

func proofOf(path string) *proof { return &proof{path: path + ".proof"} }

// read returns the note, or why there is none.
func (p *proof) read() (m mark, whyNot string, err error) {
	file, err := os.Open(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, "their progress file is missing", nil
	}
	if err != nil {
		return m, "", fmt.Errorf("reading the progress file of the records: %w", err)
	}
	defer file.Close()
	var text [noteSize]byte
	n, err := file.Read(text[:])
	if err != nil || json.Unmarshal(text[:n], &m) != nil {
		return mark{}, "their progress file cannot be read", nil
	}
	info, err := file.Stat()
	if err != nil {
		return m, "", fmt.Errorf("reading the progress file of the records: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && changedAt(stat).Sub(m.Written) > copyGap {
		return m, "their progress file has itself been copied, moved or changed since it was written", nil
	}
	return m, "", nil
}

// begin creates the note.
func (p *proof) begin(m mark) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := m.note(time.Now())
	if err != nil {
		return err
	}
	err = atomicfile.WriteDurably(p.path, text)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(p.path, os.O_RDWR, 0)
	}
	if err != nil {
		return fmt.Errorf("writing the progress file of the records: %w", err)
	}
	if p.file != nil {
		p.file.Close()
	}
	p.file, p.at = file, m
	return nil
}

// note returns the mark as the file holds it.
func (m mark) note(now time.Time) ([]byte, error) {
	m.Written = now.UTC()
	text, err := json.Marshal(m)
	if err == nil && len(text) >= noteSize {
		err = fmt.Errorf("a note of %d bytes is too long", len(text))
	}
	return fmt.Appendf(nil, "%-*s\n", noteSize-1, text), err
}

// advance notes that the records have come further. Calls may come in any order. A note that cannot be written is
// removed, since one that lags would prove something false.
func (p *proof) advance(m mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		return
	}
	p.at.Changes = max(p.at.Changes, m.Changes)
	p.at.Job, p.at.Instance, p.at.Attempt = max(p.at.Job, m.Job), max(p.at.Instance, m.Instance), max(p.at.Attempt, m.Attempt)
	text, err := p.at.note(time.Now())
	if err == nil {
		_, err = p.file.WriteAt(text, 0)
	}
	if err != nil {
		os.Remove(p.path)
		p.file.Close()
		p.file = nil
	}
}

// close closes the note, which stays.
func (p *proof) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.file.Close()
		p.file = nil
	}
}

// against returns the note, and why records that have come as far as m may be an older copy; nil if they are not.
func (p *proof) against(m mark) (noted mark, why *drover.Reason, err error) {
	noted, whyNot, err := p.read()
	switch {
	case err != nil || whyNot != "":
	case noted.Nonce != m.Nonce:
		noted, whyNot = mark{}, "the progress file belongs to other records"
	case noted.Changes > m.Changes:
		whyNot = fmt.Sprintf("they lack changes that the progress file has recorded: %d", noted.Changes-m.Changes)
	default:
		return noted, nil, nil
	}
	return noted, &drover.Reason{Code: drover.ReasonUnproved, Text: "the records may be an older copy, since " + whyNot, Since: drover.TimeOf(time.Now())}, err
}

// readMark reads how far the records have come.
func readMark(ctx context.Context, from *sql.Tx) (m mark, err error) {
	const query = `SELECT nonce, changes, last_job, last_attempt, max(last_instance, coalesce((SELECT max(id) FROM instances), 0)) FROM fleet`
	err = from.QueryRowContext(ctx, query).Scan(&m.Nonce, &m.Changes, &m.Job, &m.Attempt, &m.Instance)
	return m, err
}

// StaleRecords returns why the records may be an older copy of themselves, for callers without Begin; nil if they are
// not.
func (s *Store) StaleRecords(ctx context.Context) (why *drover.Reason, err error) {
	err = s.look(ctx, "checking whether the records are up to date", func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT unproved FROM fleet`).Scan(into(&why)); err != nil || why != nil {
			return err
		}
		m, err := readMark(ctx, tx)
		if err != nil || m.Nonce == "" {
			return err
		}
		_, why, err = s.proof.against(m)
		return err
	})
	return why, err
}

// Lost reports whether the records were lost: the note beside the file shows that there was a controller, but none has
// used this file.
func (s *Store) Lost(ctx context.Context) (lost bool, err error) {
	err = s.look(ctx, "checking whether the records were lost", func(tx *sql.Tx) error {
		m, err := readMark(ctx, tx)
		if err != nil || m.Nonce != "" {
			return err
		}
		noted, whyNot, err := s.proof.read()
		lost = whyNot == "" && noted.Changes > 0
		return err
	})
	return lost, err
}
