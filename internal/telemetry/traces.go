package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// mostTraced is how many jobs, attempts and instances are each traced at once. Further ones are not traced.
const mostTraced = 100_000

// traces exports the lives of jobs as spans: a job, or element, from when it began to wait to its end; within that its
// wait and each attempt, and the instance on which it was the first to run, from the request to its removal. Attempts
// of other jobs there link to it.
type traces struct {
	tracer trace.Tracer

	mu        sync.Mutex
	jobs      map[drover.JobID]jobSpan        // that are not final; guarded by mu
	attempts  map[drover.AttemptID]trace.Span // that are live; guarded by mu
	instances map[int64]*instanceSpan         // that are not gone; guarded by mu
}

// jobSpan is a job that has begun.
type jobSpan struct {
	ctx  context.Context // with the span
	span trace.Span
}

// instanceSpan is an instance, whose span begins with the first job on it.
type instanceSpan struct {
	engine.Instance
	span trace.Span // nil: no job has run on it yet
}

// Trace sends the lives of jobs to the OpenTelemetry collector that the environment names, until end is called. Without
// one it does nothing. It logs errors; OpenTelemetry would write them to standard error, in its own format.
func (t *Telemetry) Trace(ctx context.Context, fleet string, log *slog.Logger) (end func(context.Context) error, err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func(context.Context) error { return nil }, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not sent", logkey.Error, err) }))
	otel.SetLogger(logr.FromSlogHandler(messagesOnly{log.Handler()}))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "traces: %v", err).WithHint("OTEL_EXPORTER_OTLP_ENDPOINT is the URL of an OpenTelemetry collector, such as http://127.0.0.1:4318")
	}
	about := resource.NewSchemaless(attribute.String("service.name", "drover"), attribute.String("service.version", t.present.build.Version), attribute.String("drover.fleet", fleet))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	t.traces = newTraces(provider)
	return provider.Shutdown, nil
}

// messagesOnly drops the attributes of log lines: OpenTelemetry's have the values of environment variables that it
// cannot read, such as the collector's token.
type messagesOnly struct{ slog.Handler }

// WithAttrs drops the attributes.
func (m messagesOnly) WithAttrs([]slog.Attr) slog.Handler { return m }

// WithGroup drops the group.
func (m messagesOnly) WithGroup(string) slog.Handler { return m }

// Handle logs only the message.
func (m messagesOnly) Handle(ctx context.Context, r slog.Record) error {
	return m.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, "traces: "+r.Message, r.PC))
}

func newTraces(from trace.TracerProvider) *traces {
	return &traces{tracer: from.Tracer("drover"), jobs: map[drover.JobID]jobSpan{}, attempts: map[drover.AttemptID]trace.Span{}, instances: map[int64]*instanceSpan{}}
}

// committed traces committed writes.
func (t *traces) committed(at drover.Time, writes []engine.Write, since map[int64]drover.Time) {
	if t == nil {
		return
	}
	for _, w := range writes {
		switch {
		case w.Instance != nil:
			t.instance(*w.Instance)
		case w.Attempt != nil:
			t.attempt(*w.Attempt, since[w.Attempt.Attempt.ID.Job.Number])
		case w.Element != nil && w.Element.State.Final():
			t.final(*w.Element)
		case w.Gone != nil:
			t.gone(at, *w.Gone)
		}
	}
}

func (t *traces) instance(in engine.Instance) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.instances[in.ID]
	switch {
	case known != nil:
		known.Instance = in
	case len(t.instances) < mostTraced:
		t.instances[in.ID] = &instanceSpan{Instance: in}
	}
}

// attempt begins or ends an attempt's span. A job's first attempt also begins the job's span: the job has waited since
// then.
func (t *traces) attempt(row engine.AttemptRow, since drover.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := row.Attempt
	span, known := t.attempts[a.ID]
	if !known {
		if span = t.begin(a, since); span == nil {
			return
		}
		t.attempts[a.ID] = span
	}
	if a.State.Live() {
		return
	}
	delete(t.attempts, a.ID)
	span.SetAttributes(attribute.String("drover.state", string(a.State)), attribute.String("drover.reason", row.Reason.Code))
	if a.Exit != nil {
		span.SetAttributes(attribute.Int("process.exit.code", a.Exit.Code), attribute.Float64("drover.cpu_seconds", a.Exit.CPU.Seconds()))
	}
	if a.State != drover.AttemptSucceeded {
		span.SetStatus(codes.Error, string(a.State))
	}
	span.End(trace.WithTimestamp(a.Ended.Std()))
}

// begin begins the span of an attempt, within that of its job; nil if too much is traced already.
func (t *traces) begin(a engine.Attempt, since drover.Time) trace.Span {
	if len(t.attempts) >= mostTraced || len(t.jobs) >= mostTraced {
		return nil
	}
	job, known := t.jobs[a.ID.Job]
	if !known {
		if since == 0 || since > a.Started {
			since = a.Started
		}
		job.ctx, job.span = t.start(context.Background(), "job", since, attribute.String("drover.job", a.ID.Job.String()))
		_, waiting := t.start(job.ctx, "waiting", since)
		waiting.End(trace.WithTimestamp(a.Started.Std()))
		t.jobs[a.ID.Job] = job
	}
	options := []trace.SpanStartOption{trace.WithTimestamp(a.Started.Std()), trace.WithAttributes(attribute.Int("drover.attempt", a.ID.Number))}
	if in := t.instances[a.Instance]; in != nil {
		if in.span == nil {
			t.rented(job.ctx, in)
		}
		options = append(options, trace.WithLinks(trace.Link{SpanContext: in.span.SpanContext()}), trace.WithAttributes(about(in.Instance)...))
	}
	_, span := t.tracer.Start(job.ctx, fmt.Sprint("attempt ", a.ID.Number), options...)
	return span
}

func (t *traces) start(ctx context.Context, name string, at drover.Time, about ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithTimestamp(at.Std()), trace.WithAttributes(about...))
}

// rented begins the span of an instance in the trace of a job, with the phases of its start.
func (t *traces) rented(ctx context.Context, in *instanceSpan) {
	ctx, in.span = t.start(ctx, "instance", in.Asked, about(in.Instance)...)
	if in.Created == 0 || in.Ready == 0 {
		return
	}
	_, accepted := t.start(ctx, "accepted by its cloud", in.Asked)
	accepted.End(trace.WithTimestamp(in.Created.Std()))
	_, booted := t.start(ctx, "boot", in.Created)
	booted.End(trace.WithTimestamp(in.Ready.Std()))
}

func about(in engine.Instance) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("drover.instance", in.Name), attribute.String("cloud.provider", in.Cloud), attribute.String("cloud.availability_zone", in.Zone),
		attribute.String("host.type", in.Type.Name), attribute.String("drover.market", string(in.Market)),
	}
}

// final ends the span of a job, or element.
func (t *traces) final(e engine.ElementRow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := drover.JobID{Number: e.Job, Index: e.Element.Index}
	job, known := t.jobs[id]
	if !known {
		return
	}
	delete(t.jobs, id)
	job.span.SetAttributes(attribute.String("drover.state", string(e.State)), attribute.String("drover.reason", e.Reason.Code))
	if e.State != drover.JobSucceeded {
		job.span.SetStatus(codes.Error, string(e.State))
	}
	job.span.End(trace.WithTimestamp(e.Ended.Std()))
}

// gone ends the span of an instance. An instance on which no job ran has a trace of its own.
func (t *traces) gone(at drover.Time, end engine.InstanceEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := t.instances[end.ID]
	if in == nil {
		return
	}
	delete(t.instances, end.ID)
	if in.span == nil {
		t.rented(context.Background(), in)
	}
	if told := in.Instance.Reason; told != nil && told.Since != 0 && told.Since < at {
		_, removal := t.start(trace.ContextWithSpan(context.Background(), in.span), "removal", told.Since)
		removal.End(trace.WithTimestamp(at.Std()))
	}
	in.span.SetAttributes(attribute.String("drover.reason", end.Reason.Code), attribute.Float64("drover.cost_usd", end.Cost.USD()))
	in.span.End(trace.WithTimestamp(max(at, in.Asked).Std()))
}
