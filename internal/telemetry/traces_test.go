package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"drover"
	"drover/internal/engine"
)

// traced commits the lives of two array elements on one instance. The first element is interrupted once.
func traced(m *Telemetry) {
	in := engine.Instance{ID: 1, Name: "lab-1", Cloud: "aws", Zone: "a", Type: drover.InstanceType{Name: "large"}, Market: drover.Spot, State: drover.InstanceRunning,
		Asked: 2 * second, Created: 3 * second, Ready: 8 * second}
	id := func(index int) drover.JobID { return drover.JobID{Number: 7, Index: index} }
	attempt := func(index, number int, state drover.AttemptState, from, to drover.Time) engine.Write {
		return engine.Write{Attempt: &engine.AttemptRow{Attempt: engine.Attempt{ID: drover.AttemptID{Job: id(index), Number: number}, Instance: 1, State: state, Started: from, Ended: to}}}
	}
	ended := func(index int, state drover.JobState, at drover.Time) engine.Write {
		return engine.Write{Element: &engine.ElementRow{Job: 7, Element: engine.Element{Index: index}, State: state, Ended: at}}
	}
	job := engine.Write{Job: &engine.Job{Number: 7, Since: second, User: "PRIVATE", Labels: map[string]string{"PRIVATE": "PRIVATE"}, Name: "tiles"}}
	commit := func(at drover.Time, writes ...engine.Write) { m.Committed(at, writes, 0, nil) }
	commit(8*second, engine.Write{Instance: &in})
	commit(9*second, job, attempt(0, 1, drover.AttemptStarting, 9*second, 0), attempt(1, 1, drover.AttemptStarting, 9*second, 0))
	commit(12*second, attempt(0, 1, drover.AttemptInterrupted, 9*second, 12*second))
	commit(13*second, attempt(0, 2, drover.AttemptStarting, 13*second, 0))
	commit(15*second, attempt(1, 1, drover.AttemptSucceeded, 9*second, 15*second), ended(1, drover.JobSucceeded, 15*second))
	commit(20*second, attempt(0, 2, drover.AttemptFailed, 13*second, 19*second), ended(0, drover.JobFailed, 20*second))
	in.State, in.Reason = drover.InstanceStopping, &engine.Verdict{Cause: drover.ReasonIdle, Since: 25 * second}
	commit(25*second, engine.Write{Instance: &in})
	commit(30*second, engine.Write{Gone: &engine.InstanceEnd{ID: 1, At: 30 * second, Reason: drover.Reason{Code: drover.ReasonIdle}}})
}

func TestTraces(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	m := New(Build{})
	m.traces = newTraces(sdk.NewTracerProvider(sdk.WithSyncer(spans)))
	traced(m)
	names := map[string]string{}
	traces := map[string]int{}
	for _, s := range spans.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var got []string
	for _, s := range spans.GetSpans() {
		traces[s.SpanContext.TraceID().String()]++
		line := fmt.Sprintf("%s in %s, %d to %d, %s", s.Name, names[s.Parent.SpanID().String()], s.StartTime.Unix(), s.EndTime.Unix(), s.Status.Code)
		if len(s.Links) > 0 {
			line += ", on " + names[s.Links[0].SpanContext.SpanID().String()]
		}
		got = append(got, line)
		if text := fmt.Sprint(s.Attributes); strings.Contains(text, "PRIVATE") {
			t.Errorf("%s reveals its user or labels: %s", s.Name, text)
		}
	}
	slices.Sort(got)
	want := []string{
		"accepted by its cloud in instance, 2 to 3, Unset",
		"attempt 1 in job, 9 to 12, Error, on instance",
		"attempt 1 in job, 9 to 15, Unset, on instance",
		"attempt 2 in job, 13 to 19, Error, on instance",
		"boot in instance, 3 to 8, Unset",
		"instance in job, 2 to 30, Unset",
		"job in , 1 to 15, Unset",
		"job in , 1 to 20, Error",
		"removal in instance, 25 to 30, Unset",
		"waiting in job, 1 to 9, Unset",
		"waiting in job, 1 to 9, Unset",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(traces) != 2 {
		t.Errorf("two jobs have %d traces", len(traces))
	}
	if n := len(m.traces.jobs) + len(m.traces.attempts) + len(m.traces.instances); n != 0 {
		t.Errorf("%d jobs, attempts and instances are still tracked", n)
	}
}

func TestTracesGoToTheCollectorInTheEnvironment(t *testing.T) {
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			from, _ = gzip.NewReader(r.Body)
		}
		body, _ := io.ReadAll(from)
		got <- r.URL.Path + " " + string(body)
	}))
	defer collector.Close()
	m := New(Build{})
	if end, err := m.Trace(t.Context(), "lab", slog.New(slog.DiscardHandler)); err != nil || m.traces != nil || end(t.Context()) != nil {
		t.Errorf("without a collector: %v", err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	end, err := m.Trace(t.Context(), "lab", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	traced(m)
	if err := end(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := <-got; !strings.HasPrefix(text, "/v1/traces ") || !strings.Contains(text, "drover.instance") || !strings.Contains(text, "lab-1") {
		t.Errorf("%q", text)
	}
}

func TestErrorsOfTracesAreLogged(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=s3cret%zz")
	var log bytes.Buffer
	m := New(Build{})
	end, err := m.Trace(t.Context(), "lab", slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	traced(m)
	if err := end(context.Background()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "escape header value") || !strings.Contains(text, "traces were not sent") || strings.Contains(text, "s3cret") {
		t.Errorf("the log is %s", text)
	}
}
