package control

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// levels maps the levels of notes.
var levels = map[engine.Level]slog.Level{engine.Debug: slog.LevelDebug, engine.Info: slog.LevelInfo, engine.Warn: slog.LevelWarn}

// logs reports whether lines of this level are logged, to avoid work for those that are not.
func (c *Controller) logs(level slog.Level) bool {
	return c.cfg.Log.Enabled(context.Background(), level)
}

// log writes a line, without empty attributes.
func (c *Controller) log(level slog.Level, text string, about []slog.Attr, attrs ...slog.Attr) {
	all := slices.Concat(about, attrs)
	all = slices.DeleteFunc(all, func(a slog.Attr) bool { return a.Value.Kind() == slog.KindString && a.Value.String() == "" })
	c.cfg.Log.LogAttrs(context.Background(), level, text, all...)
}

// note reports what happened, in the log and as an event.
func (c *Controller) note(n engine.Note) {
	c.history.add(c.clock.now(), n)
	if level := levels[n.Level]; c.logs(level) {
		c.log(level, n.Text, c.about(n), slog.String(logkey.Reason, codeOf(n.Reason)))
	}
}

// about returns the log attributes of a note's subject.
func (c *Controller) about(n engine.Note) (attrs []slog.Attr) {
	switch {
	case n.Attempt != nil:
		attrs = aboutAttempt(*n.Attempt)
	case n.Job != nil:
		attrs = append(attrs, slog.String(logkey.Job, n.Job.String()))
	}
	if n.Instance != "" {
		return append(attrs, c.roster.called(n.Instance)...)
	}
	return append(attrs, slog.String(logkey.Cloud, n.Cloud))
}

func aboutAttempt(id drover.AttemptID) []slog.Attr {
	return []slog.Attr{slog.String(logkey.Job, id.Job.String()), slog.String(logkey.Attempt, id.String())}
}

func codeOf(why *drover.Reason) string {
	if why == nil {
		return ""
	}
	return why.Code
}

// logSubmitted logs accepted jobs.
func (c *Controller) logSubmitted(events []engine.Event) {
	if !c.logs(slog.LevelInfo) {
		return
	}
	for _, ev := range events {
		submitted, _ := ev.Body.(engine.Submitted)
		for _, j := range submitted.Jobs {
			c.log(slog.LevelInfo, "job "+j.Name+" queued", nil,
				slog.String(logkey.Job, drover.JobID{Number: j.Number, Index: -1}.String()), slog.String(logkey.Name, j.Name),
				slog.String(logkey.User, j.User), slog.Int(logkey.Priority, j.Priority), slog.Int(logkey.Elements, j.Array.Size()))
		}
	}
}

// logWrites logs starts and ends of attempts, once they are committed.
func (c *Controller) logWrites(writes []engine.Write) {
	c.roster.turn(writes)
	for _, w := range writes {
		if w.Attempt != nil && c.logs(slog.LevelInfo) {
			c.logAttempt(*w.Attempt)
		}
	}
}

func (c *Controller) logAttempt(row engine.AttemptRow) {
	a := row.Attempt
	about := slices.Concat(aboutAttempt(a.ID), c.roster.of(a.Instance))
	switch {
	case a.State == drover.AttemptStarting && a.Stop == nil:
		c.log(slog.LevelInfo, "attempt "+a.ID.String()+" started", about)
	case !a.State.Live():
		attrs := []slog.Attr{slog.String(logkey.State, string(a.State)), slog.String(logkey.Reason, row.Reason.Code)}
		if a.Exit != nil {
			attrs = append(attrs, slog.Int(logkey.ExitCode, a.Exit.Code))
		}
		attrs = append(attrs, slog.Float64(logkey.TookSeconds, cmp.Or(a.Ended, a.Started).Sub(a.Started).Seconds()), slog.Float64(logkey.CostUSD, row.Cost.USD()))
		c.log(slog.LevelInfo, "attempt "+a.ID.String()+" "+string(a.State), about, attrs...)
	}
}

// logDone logs the result of an effect. The engine's notes tell people what it means.
func (c *Controller) logDone(f engine.Effect, answer engine.Body, took time.Duration) {
	if !c.logs(slog.LevelDebug) {
		return
	}
	about := c.roster.of(f.InstanceID())
	if about == nil {
		about = []slog.Attr{slog.String(logkey.Cloud, f.CloudName())}
	}
	attrs := []slog.Attr{slog.String(logkey.Effect, f.Kind()), slog.Float64(logkey.TookSeconds, took.Seconds())}
	if answer != nil {
		if _, err := engine.Answer(answer); err != nil {
			attrs = append(attrs, slog.String(logkey.Code, string(err.Kind)), slog.String(logkey.Error, err.Message))
		}
	}
	c.log(slog.LevelDebug, "carried out "+f.Kind(), about, attrs...)
}
