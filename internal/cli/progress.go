package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"drover"
	"drover/internal/daemon"
	"drover/internal/engine"
	"drover/internal/human"
)

// progress shows a run to people: a bar and a line of instances on a terminal, plain lines in a pipe. Both show what
// matters; with verbose, both show everything.
type progress struct {
	err     io.Writer
	total   int
	most    int // maximum number of instances at once; 0: unknown
	verbose bool
	quiet   bool // the only job's output is shown, so print only why it waits, if it does

	bars  *mpb.Progress
	bar   *mpb.Bar
	below []*mpb.Bar // lines without a bar
	lines [3]status  // the text beside the bar, and on the lines below

	pace pace // of the jobs; used by show only

	mu      sync.Mutex
	last    string    // line; guarded by mu
	at      time.Time // when last was written; guarded by mu
	verdict string    // how the only job ended, printed after its output; guarded by mu
	closed  bool      // guarded by mu
}

// status is a text that one goroutine sets and the bar reads.
type status struct {
	mu   sync.Mutex
	text string // guarded by mu
}

func (s *status) set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = text
}

func (s *status) get(decor.Statistics) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

func (a *app) newProgress(p daemon.RunPlan, most int, verbose bool) *progress {
	ui := &progress{err: a.err, most: most, verbose: verbose, quiet: p.Streamed, at: time.Now(), total: elements(p.Batch)}
	if a.terminal && !p.Streamed {
		ui.draw(a.err, p.Batch.Name)
	}
	return ui
}

// elements returns how many elements a batch's jobs have; a job that is not an array has one.
func elements(b drover.Batch) (n int) {
	for _, j := range b.Jobs {
		n += j.Array.Size()
	}
	return n
}

// draw starts the bar, with a line below it for the instances and one for the waiting jobs.
func (p *progress) draw(to io.Writer, name string) {
	p.bars = mpb.New(mpb.WithOutput(to), mpb.WithWidth(40), mpb.WithRefreshRate(100*time.Millisecond))
	p.bar = p.bars.New(int64(p.total), barStyle(),
		mpb.PrependDecorators(decor.Name(name+" "), decor.CountersNoUnit("%d/%d ")), mpb.AppendDecorators(decor.Any(p.lines[0].get)))
	for i := range p.lines[1:] {
		p.below = append(p.below, p.bars.New(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Any(p.lines[i+1].get))))
	}
}

// interval is how often a pipe gets a line while only numbers change.
const interval = 2 * time.Second

// show shows the run's status.
func (p *progress) show(st drover.Status) {
	final := finals(st.Jobs)
	left := p.pace.left(time.Now(), st.Jobs[drover.JobRunning], final, p.total)
	if p.bar != nil {
		p.lines[0].set(" " + runWords(st) + leftWords(left))
		p.lines[1].set("  " + instanceWords(st))
		p.lines[2].set("  " + p.waitWords(st))
		p.bar.SetCurrent(int64(min(final, p.total-1))) // the last step removes the bar
		return
	}
	if p.quiet && st.Jobs[drover.JobQueued] == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%d/%d jobs final, %s%s; %s", final, p.total, runWords(st), leftWords(left), instanceWords(st))
	if wait := p.waitWords(st); wait != "" {
		line += "; " + wait
	}
	if line == p.last || time.Since(p.at) < interval && (final < p.total || p.quiet) {
		return
	}
	p.last, p.at = line, time.Now()
	fmt.Fprintln(p.err, line)
}

func runWords(st drover.Status) string {
	text := fmt.Sprintf("%d running", st.Jobs[drover.JobRunning])
	if failed := st.Jobs[drover.JobFailed]; failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// waitFor describes briefly why jobs wait while others run: enough to show that all is well. If nothing runs and
// nothing is on its way, the whole reason is shown.
var waitFor = map[string]string{
	drover.ReasonBooting:    "for instances to boot",
	drover.ReasonPlanning:   "to be planned",
	drover.ReasonCatalogue:  "for prices",
	drover.ReasonCapacity:   "for capacity",
	drover.ReasonLimit:      "for room",
	drover.ReasonBudget:     "for budget",
	drover.ReasonBlocked:    "for blocked offerings",
	drover.ReasonMaxPrice:   "for a lower price",
	drover.ReasonDependency: "for other jobs",
	drover.ReasonGang:       "for their gang",
	drover.ReasonRetry:      "for their retry",
	drover.ReasonMaxRunning: "for max_running",
}

// waitWords describes why jobs wait: the first two reasons.
func (p *progress) waitWords(st drover.Status) string {
	moves := st.Jobs[drover.JobRunning] > 0 || st.Instances[drover.InstanceCreating]+st.Instances[drover.InstanceBooting] > 0
	var parts []string
	for i, w := range st.Waiting {
		if i == 2 {
			parts = append(parts, "…")
			break
		}
		text, short := waitFor[w.Reason.Code]
		switch {
		case !short || !moves && w.Reason.Code != drover.ReasonPlanning:
			parts = append(parts, fmt.Sprintf("%d waiting: %s", w.Count, drover.Sanitize(w.Reason.Text)))
			continue
		case w.Reason.Code == drover.ReasonLimit && p.most > 0:
			text += fmt.Sprintf(" (%d of %s)", allOf(st.Instances), human.Plural(p.most, "instance"))
		}
		parts = append(parts, fmt.Sprintf("%d waiting %s", w.Count, text))
	}
	return strings.Join(parts, "; ")
}

// allOf returns how many there are in all states together.
func allOf[State comparable](counts map[State]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// mostInstances returns how many instances the settings allow at once.
func mostInstances(s engine.Settings) (most int) {
	for _, c := range s.Clouds {
		if c.MaxInstances == 0 {
			return s.MaxInstances
		}
		most += c.MaxInstances
	}
	if s.MaxInstances > 0 {
		return min(most, s.MaxInstances)
	}
	return most
}

// pace is how fast jobs finish.
type pace struct {
	began time.Time // when the first was seen to run
	done  int       // jobs that were final at that time
}

// enough is how many jobs must be final to estimate the remaining time.
const enough = 3

// left estimates the remaining time at the current pace; 0: unknown.
func (p *pace) left(now time.Time, running, final, total int) time.Duration {
	if p.began.IsZero() {
		if running > 0 {
			p.began, p.done = now, final
		}
		return 0
	}
	done := final - p.done
	if done < enough || final >= total {
		return 0
	}
	return time.Duration(float64(now.Sub(p.began)) * float64(total-final) / float64(done))
}

// leftWords formats the remaining time, no more precisely than the estimate allows.
func leftWords(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 10*time.Second:
		return ", seconds left"
	case d < time.Minute:
		return fmt.Sprintf(", about %ds left", int(d.Seconds()/10+0.5)*10)
	case d < time.Hour:
		return fmt.Sprintf(", about %dm left", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf(", about %.1fh left", d.Hours())
}

func instanceWords(st drover.Status) string {
	var words []string
	for _, state := range []drover.InstanceState{drover.InstanceUnknown, drover.InstanceCreating, drover.InstanceBooting, drover.InstanceStopping} {
		if n := st.Instances[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	text := human.Plural(allOf(st.Instances), "instance")
	if len(words) > 0 {
		text += " (" + strings.Join(words, ", ") + ")"
	}
	if st.Hourly > 0 {
		text += fmt.Sprintf(" at %s/h", human.Dollars(st.Hourly))
	}
	if st.Spent > 0 {
		text += fmt.Sprintf(", %s so far", human.Dollars(st.Spent))
	}
	return text
}

// event shows an event; how the only job ended is shown after the job's output.
func (p *progress) event(ev drover.Event) {
	text := ev.Text
	if ev.Job != nil && ev.Reason != nil && ev.Reason.Text != "" && !strings.Contains(text, ev.Reason.Text) {
		text += ": " + ev.Reason.Text
	}
	if p.quiet && ev.Level == string(engine.Warn) && ev.Job != nil && strings.HasSuffix(ev.Text, " "+string(drover.JobFailed)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.verdict = drover.Sanitize(text)
		return
	}
	p.say("%s", drover.Sanitize(text))
}

// say prints lines above the bar.
func (p *progress) say(format string, args ...any) {
	text := drover.SanitizeLines(fmt.Sprintf(format, args...))
	p.mu.Lock()
	defer p.mu.Unlock()
	var out io.Writer = p.err
	if p.bars != nil && !p.closed {
		out = p.bars
		text = "\r" + text // overwrites what Ctrl-C has printed
	}
	fmt.Fprintln(out, text)
}

// close removes the bar; later lines stay.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.verdict != "" {
		fmt.Fprintln(p.err, p.verdict)
	}
	if p.bar != nil {
		for _, bar := range append(p.below, p.bar) {
			bar.Abort(true)
		}
		p.bars.Wait()
	}
}

// log returns a logger for everything except the run's own decisions, which are events.
func (p *progress) log() *slog.Logger {
	return slog.New(&progressHandler{p, nil})
}

// progressHandler shows errors that have no event.
type progressHandler struct {
	p     *progress
	attrs []slog.Attr
}

// Enabled accepts errors only.
func (h *progressHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle shows a record as one line.
func (h *progressHandler) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(a slog.Attr) bool {
		text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.p.say("%s", text)
	return nil
}

// WithAttrs returns the handler with more attributes in each line.
func (h *progressHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &progressHandler{h.p, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup ignores groups; the lines are for people.
func (h *progressHandler) WithGroup(string) slog.Handler { return h }
