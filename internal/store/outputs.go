package store

import (
	"context"
	"fmt"

	"drover"
)

// PutOutputs writes down what an attempt's outputs turned out to hold. Doing it again replaces it.
func (s *Store) PutOutputs(ctx context.Context, id drover.AttemptID, files []drover.File) error {
	kept, err := text(files)
	if err != nil {
		return err
	}
	_, err = s.write.ExecContext(ctx, `INSERT INTO outputs (job, idx, number, files) VALUES (?, ?, ?, ?)
		ON CONFLICT (job, idx, number) DO UPDATE SET files = excluded.files`, id.Job.Number, id.Job.Index, id.Number, kept)
	if err != nil {
		return fmt.Errorf("writing down the outputs of attempt %v: %w", id, err)
	}
	return nil
}

// Outputs are what the elements of a job that succeeded have left, by index: -1 for a job that is not an array.
func (s *Store) Outputs(ctx context.Context, job int64) (map[int][]drover.File, error) {
	outputs := map[int][]drover.File{}
	err := each(ctx, s.read, func(row scanner) error {
		var index int
		var files []drover.File
		err := row.Scan(&index, into(&files))
		outputs[index] = files
		return err
	}, `SELECT o.idx, o.files FROM outputs o JOIN elements e ON e.job = o.job AND e.idx = o.idx AND e.number = o.number
		WHERE o.job = ? AND e.state = 'succeeded'`, job)
	if err != nil {
		return nil, fmt.Errorf("reading the outputs of job %d: %w", job, err)
	}
	return outputs, nil
}
