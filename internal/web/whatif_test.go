package web

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"drover"
)

// simulator returns nasty text for every configuration except one, which it refuses.
type simulator struct {
	asked WhatIf
	sent  string
	wait  chan struct{}
}

func (s *simulator) Configuration() (string, error) { return "fleet: " + nasty, nil }

func (s *simulator) WhatIf(_ context.Context, _ drover.Service, ask WhatIf) (*Comparison, error) {
	if s.wait != nil {
		<-s.wait
	}
	if s.asked = ask; ask.Trace != nil {
		text, err := io.ReadAll(ask.Trace)
		if err != nil {
			return nil, err
		}
		s.sent = string(text)
	}
	if ask.Configuration == "bad" {
		return nil, drover.Errorf(drover.KindInvalid, "%s", nasty).WithHint("%s", nasty)
	}
	return &Comparison{Columns: []string{nasty, "b"}, Rows: []ComparisonRow{{nasty, []string{nasty, "2"}}}, Notes: []string{nasty},
		Panels: []Panel{{nasty, [][]Point{{{time.Unix(0, 0), 0}, {time.Unix(10, 0), 4}}, {{time.Unix(5, 0), 2}}}}}}, nil
}

// try sends the form.
func (b browser) try(configuration, file, trace string) (int, string) {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	form.WriteField("configuration", configuration)
	form.WriteField("since", "7d")
	if file != "" {
		part, err := form.CreateFormFile("trace", file)
		if err != nil {
			b.t.Fatal(err)
		}
		io.WriteString(part, trace)
	}
	form.Close()
	r, err := http.NewRequestWithContext(b.t.Context(), "POST", b.url+"/whatif", &body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	code, text, _ := b.do(r)
	return code, text
}

func TestWhatIf(t *testing.T) {
	s := &simulator{}
	b := letInWith(t, &fake{}, drover.RoleAdmin, s)
	t.Run("the form shows the configuration in use", func(t *testing.T) {
		code, text, _ := b.get("/whatif")
		if code != 200 || !strings.Contains(text, "alert(1)") || !strings.Contains(text, `href="/whatif" aria-current`) {
			t.Errorf("%d %s", code, text)
		}
		wantHarmless(t, text)
	})
	t.Run("an edited configuration is tried on what was recorded", func(t *testing.T) {
		code, text := b.try("edited\r\nlines", "", "")
		if code != 200 || s.asked.Configuration != "edited\nlines" || s.asked.TraceName != "" || time.Since(s.asked.Since) < 6*24*time.Hour {
			t.Errorf("%d, asked %+v", code, s.asked)
		}
		if !strings.Contains(text, `points="0.0,99.0 1000.0,1.0 "`) || !strings.Contains(text, `points="500.0,50.0 "`) || !strings.Contains(text, "edited\nlines</textarea>") {
			t.Error(text)
		}
		wantHarmless(t, text)
	})
	t.Run("an edited configuration is tried on an uploaded trace", func(t *testing.T) {
		if code, _ := b.try("x", "jobs.csv", "submit,runtime"); code != 200 || s.asked.TraceName != "jobs.csv" || s.sent != "submit,runtime" {
			t.Errorf("%d, asked %+v, sent %q", code, s.asked, s.sent)
		}
	})
	t.Run("an error is shown beside the text", func(t *testing.T) {
		code, text := b.try("bad", "", "")
		if code != 400 || !strings.Contains(text, "alert(1)") || !strings.Contains(text, "bad</textarea>") {
			t.Errorf("%d %s", code, text)
		}
		wantHarmless(t, text)
	})
	t.Run("only one is tried at a time", func(t *testing.T) {
		s.wait = make(chan struct{})
		first := make(chan int)
		go func() {
			code, _ := b.try("x", "", "")
			first <- code
		}()
		for deadline := time.Now().Add(10 * time.Second); len(b.h.trying) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no trial has started")
			}
		}
		second, _ := b.try("x", "", "")
		close(s.wait)
		if one := <-first; one != 200 || second != 429 {
			t.Errorf("%d, %d", one, second)
		}
	})
	t.Run("it needs an administrator and a simulator", func(t *testing.T) {
		operator := letInWith(t, &fake{}, drover.RoleOperate, &simulator{})
		code, _, _ := operator.get("/whatif")
		tried, _ := operator.try("x", "", "")
		_, text, _ := operator.get("/")
		if code != 403 || tried != 403 || strings.Contains(text, `href="/whatif"`) {
			t.Errorf("%d, %d", code, tried)
		}
		if code, _, _ := letIn(t, &fake{}, drover.RoleAdmin).get("/whatif"); code != 404 {
			t.Error(code)
		}
	})
}
