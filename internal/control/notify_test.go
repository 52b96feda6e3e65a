package control

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/store"
	"drover/internal/webhook"
)

// notifying returns a controller with one batch, which is final and has a message due to the URL.
func notifying(t *testing.T, url string) (*fixture, *Controller) {
	t.Helper()
	f := newFixture(t)
	f.cfg.Notify = webhook.Config{Trusted: true}
	c := must(New(t.Context(), f.cfg))(t)
	batch := drover.Batch{Name: "b", Notify: &drover.Notify{URL: url, On: []string{drover.NotifyFinal}}, Jobs: []drover.JobSpec{{Name: "j", Command: []string{"true"}}}}
	must(f.store.Submit(t.Context(), drover.Submission{Batch: batch}, store.Terms{}))(t)
	for _, j := range must(f.store.Pending(t.Context()))(t) {
		end := engine.JobEnd{Number: j.Number, State: drover.JobSucceeded, Succeeded: 1, At: 9}
		if err := f.store.Commit(t.Context(), []engine.Write{{Job: &j}, {Ended: &end}}); err != nil {
			t.Fatal(err)
		}
	}
	return f, c
}

// A run sends what is due when it ends, maybe while the controller does.
func TestCallsOfTellSendNoMessageTwice(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	begun, answer := make(chan bool, 2), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		sent.Add(1)
		begun <- true
		<-answer
	}))
	defer s.Close()
	_, c := notifying(t, s.URL)
	var both sync.WaitGroup
	both.Go(func() { c.Tell(t.Context()) })
	<-begun
	both.Go(func() { c.Tell(t.Context()) })
	select {
	case <-begun:
	case <-time.After(100 * time.Millisecond): // the second call waits
	}
	close(answer)
	both.Wait()
	if n := sent.Load(); n != 1 {
		t.Errorf("the message was sent %d times", n)
	}
}

func TestAMessageThatCannotBeRecordedAsSentIsReported(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent.Add(1) }))
	defer s.Close()
	f, c := notifying(t, s.URL)
	other := must(store.Open(t.Context(), filepath.Join(filepath.Dir(filepath.Dir(f.logs)), "drover.db")))(t)
	defer other.Close()
	must(other.Begin(t.Context(), f.cfg.Fleet))(t) // from now on, the first controller may not write
	if c.Tell(t.Context()) || sent.Load() != 1 {
		t.Errorf("sent %d messages, all recorded", sent.Load())
	}
}
