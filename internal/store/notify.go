package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/webhook"
)

// notify records who is notified of a batch.
func (s *Store) notify(ctx context.Context, tx *sql.Tx, submission int64, n *drover.Notify) error {
	if n == nil {
		return nil
	}
	return execute(ctx, tx, `INSERT INTO notify (submission, url, failed, final) VALUES (?, ?, ?, ?)`,
		submission, n.URL, slices.Contains(n.On, drover.NotifyFailed), slices.Contains(n.On, drover.NotifyFinal))
}

// Telling is a message that is due.
type Telling struct {
	URL     string
	Message webhook.Message
	tries   int
}

// The join stays in this order, so that the work is proportional to the batches that have messages left.
const tellings = `SELECT submission, url, tries, has_failed, is_final, batch, user_name, submitted FROM (
	SELECT *, row_number() OVER (PARTITION BY user_name ORDER BY next, submission) AS place FROM (
	SELECT n.submission, n.url, n.tries, n.next, n.failed AND (SELECT sum(j.failed) FROM jobs j WHERE j.submission = n.submission) > 0 AS has_failed,
	n.final AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.submission = n.submission AND j.engine IS NOT NULL) AS is_final,
	f.batch, f.user_name, f.submitted
	FROM notify n CROSS JOIN jobs f ON f.number = n.submission WHERE n.next <= ?)
	WHERE has_failed OR is_final) WHERE place <= ? ORDER BY submission`

// Tellings returns the messages that are due, the first few of each user, so that a slow receiver delays nobody else.
func (s *Store) Tellings(ctx context.Context, now drover.Time, perUser int) (due []Telling, err error) {
	err = s.look(ctx, "looking for messages to send", func(tx *sql.Tx) error {
		due, err = collect(ctx, tx, func(row scanner) (t Telling, err error) {
			var failed, final int
			m := &t.Message
			err = row.Scan(&m.FirstJob, &t.URL, &t.tries, &failed, &final, &m.Batch, &m.User, &m.Submitted)
			if m.Event = drover.NotifyFinal; failed > 0 {
				m.Event = drover.NotifyFailed
			}
			return t, err
		}, tellings, now, perUser)
		if err != nil {
			return err
		}
		for i := range due {
			if err := countInto(ctx, tx, &due[i].Message); err != nil {
				return err
			}
		}
		return nil
	})
	return due, err
}

// countInto fills in a batch's progress.
func countInto(ctx context.Context, tx *sql.Tx, m *webhook.Message) error {
	var elements, queued, succeeded, failed, cancelled int
	err := tx.QueryRowContext(ctx, `SELECT count(*), sum(last_index - first_index + 1), sum(queued), sum(succeeded), sum(failed), sum(cancelled)
		FROM jobs WHERE submission = ?`, m.FirstJob).Scan(&m.Jobs, &elements, &queued, &succeeded, &failed, &cancelled)
	if m.Event == drover.NotifyFinal {
		queued = 0
	}
	m.Counts = map[drover.JobState]int{
		drover.JobQueued: queued, drover.JobRunning: elements - queued - succeeded - failed - cancelled,
		drover.JobSucceeded: succeeded, drover.JobFailed: failed, drover.JobCancelled: cancelled,
	}
	m.Text = fmt.Sprintf("batch %s: %d of %d jobs succeeded", m.Batch, succeeded, elements)
	if failed > 0 {
		m.Text += fmt.Sprintf(", %d failed", failed)
	}
	if cancelled > 0 {
		m.Text += fmt.Sprintf(", %d cancelled", cancelled)
	}
	if m.Event == drover.NotifyFailed && succeeded+failed+cancelled < elements {
		m.Text += "; the others continue"
	}
	return err
}

// mostTries is how often Drover tries to deliver a message: with the pauses in between, for a day.
const mostTries = 20

// pauseAfter returns how long to wait after a failed try: first, then twice as long each time, up to two hours. Again
// is false if another try is useless.
func pauseAfter(failure error, tries int, first time.Duration) (pause time.Duration, again bool) {
	again = failure != nil && drover.KindOf(failure) == drover.KindTransient && tries+1 < mostTries
	return min(first<<min(tries, mostTries), 2*time.Hour), again
}

// Told records that a message has arrived or, after a transient error, when it is sent again, unless it has no tries
// left. It reports whether the message is done.
func (s *Store) Told(ctx context.Context, t Telling, failure error, now drover.Time) (done bool, err error) {
	pause, again := pauseAfter(failure, t.tries, time.Minute)
	err = s.change(ctx, "recording a sent message", func(tx *sql.Tx) error {
		if again {
			return execute(ctx, tx, `UPDATE notify SET tries = tries + 1, next = ? WHERE submission = ?`, now.Add(pause), t.Message.FirstJob)
		}
		return execute(ctx, tx, `UPDATE notify SET tries = 0, next = 0, `+t.Message.Event+` = FALSE WHERE submission = ?`, t.Message.FirstJob)
	})
	return !again, err
}

// ForgetTold drops the batches that need no further messages.
func (s *Store) ForgetTold(ctx context.Context) error {
	const told = ` FROM notify WHERE NOT failed AND NOT final
		OR NOT final AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.submission = notify.submission AND (j.engine IS NOT NULL OR j.failed > 0))`
	var some bool // usually false, and then nothing is written
	if err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1`+told+`)`).Scan(&some); err != nil {
		return s.doing(ctx, "looking for old messages", err)
	}
	if !some {
		return nil
	}
	return s.change(ctx, "deleting old messages", func(tx *sql.Tx) error {
		return execute(ctx, tx, `DELETE`+told)
	})
}
