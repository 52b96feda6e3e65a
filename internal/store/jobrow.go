package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"drover"
	"drover/internal/engine"
)

// jobRow is a row of jobs, with that of its element if it is not an array.
type jobRow struct {
	job     drover.Job // what its elements have in common
	array   drover.Array
	gang    int
	foreach []string
	final   bool
	again   int64         // the job's place among those put back in the queue
	waiting engine.Ranges // of an array: the elements that wait
	counts  map[drover.JobState]int
	ended   drover.Time
	only    *elementRow // of a job that is not an array, if it has one
	bytes   int         // of job, as JSON, without attempts
}

// elementRow is the progress of a job or of one element of an array.
type elementRow struct {
	index  int
	number int          // of its last attempt
	memory drover.Bytes // increased after it ran out; 0: what its job says
	state  drover.JobState
	code   *int
	ended  drover.Time
	reason drover.Reason
}

// The waiting elements come from the engine's column: only it distinguishes them from elements that were cancelled
// before they had a row.
const selectJobs = `SELECT j.number, j.batch, j.user_name, j.submitted, j.priority, j.state, j.engine IS NULL, j.again,
	CASE WHEN j.first_index < 0 THEN NULL ELSE json_extract(j.engine, '$.queued') END,
	j.last_index - j.first_index + 1, j.queued, j.succeeded, j.failed, j.cancelled, j.ended, j.reason, j.spec,
	coalesce(e.number, 0), coalesce(e.memory, 0), coalesce(e.state, ''), e.code, coalesce(e.ended, 0), e.reason
	FROM jobs j LEFT JOIN elements e ON e.job = j.number AND e.idx = -1
	WHERE j.number IN (`

// specBytes limits the bytes of jobs' specifications that are read at once. One includes the list of its inputs,
// which may be long.
const specBytes = 16 << 20

// errEnough ends the reading of rows.
var errEnough = errors.New("enough rows were read")

// jobRows reads up to n rows of a range that pass a filter, or that have elements which may pass it. It reads fewer if
// they are large; more means that there may be others.
func jobRows(ctx context.Context, from source, f drover.JobFilter, within stretch, n int) (rows []jobRow, more bool, err error) {
	query, args := choose(f, within, n)
	read := 0
	err = each(ctx, from, func(row scanner) error {
		if read > specBytes {
			return errEnough
		}
		j, spec, err := readJob(row)
		rows, read = append(rows, j), read+spec
		return err
	}, selectJobs+query+`) ORDER BY j.number`+direction(f), args...)
	if errors.Is(err, errEnough) {
		return rows, true, nil
	}
	return rows, len(rows) == n, err
}

// choose returns the query for the numbers of the jobs that pass a filter. It searches states one by one, since each
// has its index.
func choose(f drover.JobFilter, within stretch, n int) (string, []any) {
	var c conditions
	c.add(`number BETWEEN ? AND ?`, within.from, within.to)
	c.addIf(f.Match != "", `(instr(lower(name), lower(?)) > 0 OR instr(lower(batch), lower(?)) > 0)`, f.Match, f.Match)
	c.addIf(f.Job != 0, `number = ?`, f.Job)
	c.addIf(f.Batch != "", `batch = ?`, f.Batch)
	c.addIf(f.User != "", `user_name = ?`, f.User)
	c.addIf(f.Since != 0, `(engine IS NOT NULL OR ended >= ?)`, f.Since)
	c.addIf(f.Tried, `EXISTS (SELECT 1 FROM bills b WHERE b.job = number)`)
	for label, value := range f.Labels {
		c.add(`number IN (SELECT job FROM labels WHERE label = ? AND value = ?)`, label, value)
	}
	var parts []string
	var args []any
	for _, state := range f.States {
		one := c.and(`state = ?`, state)
		if f.Elements {
			one = c.and(holding(state))
		}
		parts, args = append(parts, one.query(`SELECT number FROM jobs`)), append(args, one.args...)
	}
	if len(f.States) == 0 {
		parts, args = append(parts, c.query(`SELECT number FROM jobs`)), c.args
	}
	return strings.Join(parts, ` UNION `) + ` ORDER BY number` + direction(f) + ` LIMIT ?`, append(args, n)
}

// direction returns the SQL order of a list of jobs.
func direction(f drover.JobFilter) string {
	if f.Newest {
		return ` DESC`
	}
	return ``
}

// holding returns the condition that a job has elements in a state.
func holding(state drover.JobState) string {
	switch state {
	case drover.JobQueued:
		return `engine IS NOT NULL AND queued > 0`
	case drover.JobRunning:
		return `state = 'running'`
	case drover.JobSucceeded:
		return `succeeded > 0`
	case drover.JobFailed:
		return `failed > 0`
	case drover.JobCancelled:
		return `cancelled > 0`
	}
	return `FALSE`
}

// readJob reads a row, and returns the size of its specification.
func readJob(row scanner) (j jobRow, specBytes int, err error) {
	var spec drover.JobSpec
	var asked sql.RawBytes
	var reason drover.Reason
	var submitted drover.Time
	var size, queued, succeeded, failed, cancelled int
	only := elementRow{index: -1}
	err = row.Scan(&j.job.ID.Number, &j.job.Batch, &j.job.User, &submitted, &j.job.Priority, &j.job.State, &j.final, &j.again, into(&j.waiting),
		&size, &queued, &succeeded, &failed, &cancelled, &j.ended, into(&reason), &asked,
		&only.number, &only.memory, &only.state, &only.code, &only.ended, into(&only.reason))
	if err == nil {
		err = json.Unmarshal(asked, &spec)
	}
	j.job.ID.Index, j.array, j.gang, j.foreach = -1, spec.Array, spec.Gang, spec.Foreach
	j.job.Name, j.job.Labels, j.job.Command, j.job.Image = spec.Name, spec.Labels, spec.Command, spec.Image
	j.job.Resources, j.job.Placement, j.job.Spot, j.job.After, j.job.AfterAny = spec.Resources, drover.PlacementOf(spec.Placement), spec.Spot, spec.After, spec.AfterAny
	j.job.Timeout, j.job.Expected, j.job.MaxWait = drover.Seconds(spec.Timeout), drover.Seconds(spec.Expected), drover.Seconds(spec.MaxWait)
	j.job.Submitted, j.job.Reason = submitted.Std(), reasonOf(reason)
	j.job.Attempts = []drover.Attempt{}
	j.counts = map[drover.JobState]int{
		drover.JobQueued: queued, drover.JobRunning: 0, drover.JobSucceeded: succeeded, drover.JobFailed: failed,
		drover.JobCancelled: cancelled,
	}
	if !j.final {
		j.counts[drover.JobRunning] = size - queued - succeeded - failed - cancelled
	}
	if only.state != "" {
		j.only = &only
	}
	text, wrong := json.Marshal(j.job)
	j.bytes = len(text)
	return j, len(asked), cmp.Or(err, wrong)
}

// indexed reports whether a job with this array has an element of this index; -1 means the whole job.
func indexed(a drover.Array, index int) bool { return index < 0 || a.Has(index) }

// whole returns the job, or the whole array.
func (j jobRow) whole() drover.Job {
	if j.only != nil {
		return j.tried(*j.only)
	}
	job := j.job
	job.Ended = standard(j.ended)
	if job.State == drover.JobQueued {
		job.Reason = nil // it is why other elements were cancelled, not why the job waits
	}
	if j.array.Set {
		array := j.array
		job.Array, job.Gang, job.Counts = &array, j.gang, j.counts
	}
	return job
}

// tried returns an element with a row.
func (j jobRow) tried(row elementRow) drover.Job {
	e := j.job
	if e.ID.Index = row.index; row.index >= 0 {
		e.ArrayIndex = &row.index
		e.File = drover.JobSpec{Foreach: j.foreach}.FileOf(row.index)
	}
	e.Resources.Memory = cmp.Or(row.memory, e.Resources.Memory)
	e.State, e.ExitCode, e.Reason, e.Ended = row.state, row.code, reasonOf(row.reason), standard(row.ended)
	return e
}

// untried returns an element of an array without a row: it waits, or was cancelled together with all others that
// waited.
func (j jobRow) untried(index int) drover.Job {
	row := elementRow{index: index, state: drover.JobQueued}
	if j.waiting.Has(index) {
		return j.tried(row)
	}
	row.state, row.ended = drover.JobCancelled, j.ended
	row.reason = drover.Reason{Code: drover.ReasonCancelled, Text: "cancelled before its first attempt"}
	if why := j.job.Reason; why != nil && (!j.final || j.job.State == drover.JobCancelled) {
		row.reason = *why
	}
	return j.tried(row)
}
