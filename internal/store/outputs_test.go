package store

import (
	"testing"
	"testing/synctest"

	"drover"
)

func TestOutputsThatComeTogetherShareATransaction(t *testing.T) {
	const attempts = 50
	synctest.Test(t, func(t *testing.T) {
		s := sqliteOpener(t)(t)
		begun(t, s)
		changes := func() (n int) {
			if err := s.write.QueryRowContext(t.Context(), `SELECT changes FROM fleet`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := changes()
		busy, err := s.write.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error)
		for i := range attempts {
			go func() {
				results <- s.PutOutputs(t.Context(), attempt(1, i, 1).ID, []drover.File{{Path: "out"}}, nil)
			}()
		}
		synctest.Wait()
		if err := busy.Rollback(); err != nil {
			t.Fatal(err)
		}
		for range attempts {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if n := changes() - before; n > 2 { // the first one's, and one for all others
			t.Errorf("there were %d transactions", n)
		}
		var stored int
		if err := s.read.QueryRowContext(t.Context(), `SELECT count(*) FROM outputs WHERE files LIKE '%out%'`).Scan(&stored); err != nil || stored != attempts {
			t.Errorf("%d are recorded, error %v", stored, err)
		}
	})
}
