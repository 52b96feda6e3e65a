package store

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"drover"
	"drover/internal/engine"
)

// successes is a log, in a file beside the records, of the attempts that succeeded and of their outputs, in case a
// backup of the records is put back: jobs that succeeded since need not run again, as their results still exist. A line
// is written after the change it is about, without waiting for the disk. A missing line only costs a repetition, so a
// log that cannot be written is tolerated.
type successes struct {
	path string

	mu    sync.Mutex
	nonce string   // of these records; guarded by mu
	file  *os.File // nil: none is kept; guarded by mu
	size  int64    // guarded by mu
}

// success is a line of the log. The outputs of an attempt come before its success, if it succeeded.
type success struct {
	Nonce   string          `json:"nonce"` // of its records
	Success *engine.Success `json:"success,omitempty"`
	Outputs *outputs        `json:"outputs,omitempty"`
}

type outputs struct {
	Attempt  drover.AttemptID `json:"attempt"`
	Files    []drover.File    `json:"files,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
}

// successesSize is the size at which the log is set aside as the older one of two: some 100,000 jobs without outputs. A
// single line is shorter, as the outputs of one attempt are limited.
const successesSize = 32 << 20

func successesOf(path string) *successes { return &successes{path: path + ".successes"} }

// begin opens the log for records with a nonce.
func (l *successes) begin(nonce string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
	l.nonce = nonce
	if l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("opening the success log: %w", err)
	}
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("opening the success log: %w", err)
	}
	if l.size = info.Size(); l.size > 0 {
		l.append([]byte("\n")) // the last line may be incomplete
	}
	return nil
}

// add logs attempts that succeeded, or outputs.
func (l *successes) add(lines ...success) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text []byte
	for _, line := range lines {
		line.Nonce = l.nonce
		if encoded, err := json.Marshal(line); err == nil {
			text = append(append(text, encoded...), '\n')
		}
	}
	if len(text) > 0 {
		l.append(text)
	}
}

// append writes to the log, and begins another once it is full. After an error the log is closed: a success must not be
// logged if its outputs are missing.
func (l *successes) append(text []byte) {
	if l.file == nil {
		return
	}
	if l.size+int64(len(text)) > successesSize {
		l.file.Close()
		os.Rename(l.path, l.path+".1")
		var err error
		if l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600); err != nil {
			return
		}
		l.size = 0
	}
	if _, err := l.file.Write(text); err != nil {
		l.file.Close()
		l.file = nil
	}
	l.size += int64(len(text))
}

func (l *successes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// succeeded returns lines for the attempts in the writes that have succeeded.
func succeeded(writes []engine.Write) (lines []success) {
	for _, w := range writes {
		if w.Attempt == nil || w.Attempt.Attempt.State != drover.AttemptSucceeded {
			continue
		}
		won := engine.Success{Attempt: w.Attempt.Attempt.ID, Ended: w.Attempt.Attempt.Ended}
		if exit := w.Attempt.Attempt.Exit; exit != nil {
			won.Exit = *exit
			won.Exit.Stdout, won.Exit.Stderr = "", ""
		}
		lines = append(lines, success{Success: &won})
	}
	return lines
}

// recall reads from the log which attempts have succeeded, in their order, of jobs that are not final in the records.
// It records their outputs.
func (s *Store) recall(ctx context.Context, tx *sql.Tx, nonce string) (won []engine.Success, err error) {
	open := map[int64]bool{}
	err = each(ctx, tx, func(row scanner) error {
		var number int64
		err := row.Scan(&number)
		open[number] = true
		return err
	}, `SELECT number FROM jobs WHERE ended = 0`)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{s.successes.path + ".1", s.successes.path} {
		err := readSuccesses(path, func(line success) error {
			switch o := line.Outputs; {
			case line.Nonce != nonce:
			case o != nil && open[o.Attempt.Job.Number]:
				return putOutputs(ctx, tx, o.Attempt, o.Files, o.Warnings)
			case line.Success != nil && open[line.Success.Attempt.Job.Number]:
				won = append(won, *line.Success)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return won, nil
}

// readSuccesses calls take with each readable line of a log.
func readSuccesses(path string, take func(success) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the success log: %w", err)
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<16)
	for {
		text, err := lines.ReadBytes('\n')
		var line success
		if json.Unmarshal(text, &line) == nil {
			if err := take(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the success log: %w", err)
		}
	}
}
