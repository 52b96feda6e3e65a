package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"drover"
)

// puts groups the outputs of attempts: those that come during one transaction share the next. When a thousand attempts
// end at once, they must not write to the disk a thousand times while the loop's commits wait their turn.
type puts struct {
	turn chan struct{} // holds an element during a transaction

	mu      sync.Mutex
	waiting []*put // guarded by mu
}

// put is the outputs of one attempt.
type put struct {
	outputs
	done chan error // has room for the result
}

// PutOutputs records an attempt's outputs and the warnings about them. Repeating it replaces them.
func (s *Store) PutOutputs(ctx context.Context, id drover.AttemptID, files []drover.File, warnings []string) error {
	own := &put{outputs{id, files, warnings}, make(chan error, 1)}
	s.puts.mu.Lock()
	s.puts.waiting = append(s.puts.waiting, own)
	s.puts.mu.Unlock()
	select {
	case s.puts.turn <- struct{}{}:
		s.putWaiting(ctx)
		<-s.puts.turn
		return <-own.done
	case err := <-own.done:
		return err
	}
}

// putWaiting records all outputs that wait, in one transaction.
func (s *Store) putWaiting(ctx context.Context) {
	s.puts.mu.Lock()
	all := s.puts.waiting
	s.puts.waiting = nil
	s.puts.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx) // the others' contexts have not ended
	err := s.change(ctx, "recording outputs", func(tx *sql.Tx) error {
		for _, p := range all {
			if err := putOutputs(ctx, tx, p.Attempt, p.Files, p.Warnings); err != nil {
				return err
			}
		}
		return nil
	})
	for _, p := range all {
		if err == nil {
			s.successes.add(success{Outputs: &p.outputs})
		}
		p.done <- err
	}
}

func putOutputs(ctx context.Context, tx *sql.Tx, id drover.AttemptID, files []drover.File, warnings []string) error {
	// This attempt's files have replaced those of earlier attempts, whose lists would only fill the disk.
	if err := execute(ctx, tx, `UPDATE outputs SET files = '[]' WHERE job = ? AND idx = ? AND number < ?`, id.Job.Number, id.Job.Index, id.Number); err != nil {
		return err
	}
	return execute(ctx, tx, `INSERT INTO outputs (job, idx, number, files, warnings) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (job, idx, number) DO UPDATE SET files = excluded.files, warnings = excluded.warnings`,
		id.Job.Number, id.Job.Index, id.Number, asJSON{files}, asJSONIf(len(warnings) > 0, warnings))
}

// OutputsSize returns how many bytes Outputs would read.
func (s *Store) OutputsSize(ctx context.Context, job int64) (bytes int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT coalesce(sum(length(o.files)), 0)`+succeededOutputs, job).Scan(&bytes)
	if err != nil {
		return 0, s.doing(ctx, fmt.Sprintf("measuring the outputs of job %d", job), err)
	}
	return bytes, nil
}

// succeededOutputs selects the outputs of a job's elements that succeeded.
const succeededOutputs = ` FROM outputs o JOIN elements e ON e.job = o.job AND e.idx = o.idx AND e.number = o.number
	WHERE o.job = ? AND e.state = 'succeeded'`

// Outputs returns the outputs of a job's successful elements, by index: -1 for a job that is not an array.
func (s *Store) Outputs(ctx context.Context, job int64) (map[int][]drover.File, error) {
	outputs := map[int][]drover.File{}
	err := each(ctx, s.read, func(row scanner) error {
		var index int
		var files []drover.File
		err := row.Scan(&index, into(&files))
		outputs[index] = files
		return err
	}, `SELECT o.idx, o.files`+succeededOutputs, job)
	if err != nil {
		return nil, s.doing(ctx, fmt.Sprintf("reading the outputs of job %d", job), err)
	}
	return outputs, nil
}

// warnings returns the warnings about the outputs of last attempts, of up to MaxWarned jobs or elements.
func warnings(ctx context.Context, tx *sql.Tx) (list []drover.Warning, err error) {
	err = each(ctx, tx, func(row scanner) error {
		var w drover.Warning
		var texts []string
		if err := row.Scan(&w.Job.Number, &w.Job.Index, &w.Name, into(&texts)); err != nil {
			return err
		}
		for _, w.Text = range texts {
			list = append(list, w)
		}
		return nil
	}, `SELECT o.job, o.idx, json_extract(j.spec, '$.name'), o.warnings FROM outputs o JOIN elements e ON e.job = o.job AND e.idx = o.idx AND e.number = o.number
		JOIN jobs j ON j.number = o.job WHERE o.warnings IS NOT NULL ORDER BY o.job, o.idx LIMIT ?`, drover.MaxWarned)
	return list, err
}

// OutputsOf returns the output files of a job that is not an array, or of one element: those of its last attempt with
// any outputs, however it ended. KindNotFound; KindInvalid for an array as a whole.
func (s *Store) OutputsOf(ctx context.Context, id drover.JobID) (files []drover.File, err error) {
	err = s.look(ctx, "reading the outputs of job "+id.String(), func(tx *sql.Tx) error {
		row, err := rowOf(ctx, tx, id)
		if err != nil {
			return err
		}
		if id.Index < 0 && row.array.Set {
			return drover.Errorf(drover.KindInvalid, "job %v is an array: only its elements have outputs", id).
				WithHint("choose an element, such as %d.%d", id.Number, row.array.First)
		}
		return each(ctx, tx, func(row scanner) error { return row.Scan(into(&files)) },
			`SELECT files FROM outputs WHERE job = ? AND idx = ? ORDER BY number DESC LIMIT 1`, id.Number, id.Index)
	})
	if files == nil {
		files = []drover.File{}
	}
	return files, err
}
