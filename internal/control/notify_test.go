package control

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"drover"
	"drover/internal/engine"
	"drover/internal/store"
	"drover/internal/webhook"
)

func TestAMessageThatCannotBeRecordedAsSentIsReported(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer s.Close()
	f := newFixture(t)
	f.cfg.Notify = webhook.Config{Trusted: true}
	c := must(New(t.Context(), f.cfg))(t)
	batch := drover.Batch{Name: "b", Notify: &drover.Notify{URL: s.URL, On: []string{drover.NotifyFinal}}, Jobs: []drover.JobSpec{{Name: "j", Command: []string{"true"}}}}
	must(f.store.Submit(t.Context(), drover.Submission{Batch: batch}, store.Terms{}))(t)
	for _, j := range must(f.store.Pending(t.Context()))(t) {
		end := engine.JobEnd{Number: j.Number, State: drover.JobSucceeded, Succeeded: 1, At: 9}
		if err := f.store.Commit(t.Context(), []engine.Write{{Job: &j}, {Ended: &end}}); err != nil {
			t.Fatal(err)
		}
	}
	other := must(store.Open(t.Context(), filepath.Join(filepath.Dir(filepath.Dir(f.logs)), "drover.db")))(t)
	defer other.Close()
	must(other.Begin(t.Context(), f.cfg.Fleet))(t) // from now on, the first controller may not write
	if c.Tell(t.Context()) || sent.Load() != 1 {
		t.Errorf("sent %d messages, all recorded", sent.Load())
	}
}
