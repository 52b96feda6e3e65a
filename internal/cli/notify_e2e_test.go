//go:build e2e

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/internal/webhook"
)

// TestARunPostsItsResult makes a run post its messages to a receiver on this host, which its configuration allows.
func TestARunPostsItsResult(t *testing.T) {
	t.Parallel()
	got := make(chan webhook.Message, 4)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m webhook.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || !strings.HasPrefix(r.Header.Get(webhook.SignatureHeader), "t=") {
			t.Errorf("the request is unsigned or not a message: %v", err)
		}
		got <- m
	}))
	defer s.Close()
	p := newPlace(t)
	for name, text := range map[string]string{
		"drover.yaml": "version: 1\nclouds: {here: {driver: local}}\nnotify: {secret: file:secret, allow: [127.0.0.1]}\n",
		"closed.yaml": "version: 1\nclouds: {here: {driver: local}}\n",
		"secret":      "s3cret\n",
		"batch.yaml": "notify: {url: '" + s.URL + "', on: [failed, final]}\njobs:\n  - {name: bad, command: ['false']}\n" +
			"  - {name: good, array: 3, after: {any: bad}, command: [sleep, '3']}\n",
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := p.start("run", "-c", "drover.yaml", "batch.yaml")
	<-run.ended
	next := func() webhook.Message {
		select {
		case m := <-got:
			return m
		case <-time.After(30 * time.Second):
			t.Fatal("no message was posted")
		}
		return webhook.Message{}
	}
	first, last := next(), next()
	if first.Event != "failed" || first.Text != "batch batch: 0 of 4 jobs succeeded, 1 failed; the others continue" || first.Batch != "batch" {
		t.Errorf("the first message is %+v", first)
	}
	if last.Event != "final" || last.Text != "batch batch: 3 of 4 jobs succeeded, 1 failed" || last.Jobs != 2 {
		t.Errorf("the last message is %+v", last)
	}
	if len(got) > 0 {
		t.Errorf("the run posted another message: %+v", <-got)
	}

	alone := p.start("run", "-c", "drover.yaml", "--notify", s.URL, "--", "true")
	<-alone.ended
	if m := next(); m.Event != "final" || m.Text != "batch true: 1 of 1 jobs succeeded" {
		t.Errorf("for a command the message is %+v", m)
	}
	refused := p.start("run", "-c", "closed.yaml", "--notify", s.URL, "--", "true")
	<-refused.ended
	if len(got) > 0 {
		t.Errorf("the run posted to a host that is not public: %+v", <-got)
	}
}
