package cli

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-runewidth"

	"drover"
)

// watched is a fleet with names that would control a terminal.
type watched struct {
	drover.Service
	err error
}

func (w watched) Status(context.Context) (drover.Status, error) {
	return drover.Status{Fleet: hostile, Jobs: map[drover.JobState]int{drover.JobQueued: 7}, Instances: map[drover.InstanceState]int{drover.InstanceRunning: 2},
		Waiting: []drover.Waiting{{Count: 7, Reason: drover.Reason{Code: "budget", Text: hostile}}}, Paused: &drover.Reason{Text: hostile}, Hourly: 1.25,
		Budgets: []drover.BudgetUse{{Scope: "label " + hostile, Window: "daily", Hard: 10, Spent: 9, Promised: .5}}}, w.err
}

func (w watched) Instances(context.Context, drover.InstanceFilter) (page drover.Page[drover.Instance], err error) {
	for range 100 {
		page.Items = append(page.Items, drover.Instance{Name: hostile + "name", Type: hostile, Cloud: hostile, State: drover.InstanceRunning, Idle: drover.IdleDrain})
	}
	return page, nil
}

func (w watched) Jobs(context.Context, drover.JobFilter) (drover.Page[drover.Job], error) {
	return drover.Page[drover.Job]{Items: []drover.Job{{Name: hostile, User: hostile, State: drover.JobRunning, Array: &drover.Array{Last: 9, Set: true},
		Counts: map[drover.JobState]int{drover.JobRunning: 4}}}}, nil
}

func (w watched) Events(context.Context, drover.EventFilter) iter.Seq2[drover.Event, error] {
	return func(yield func(drover.Event, error) bool) { yield(drover.Event{Text: hostile, Level: "warn"}, nil) }
}

func TestTop(t *testing.T) {
	seen, err := lookAt(t.Context(), watched{})
	if err != nil {
		t.Fatal(err)
	}
	model := func(color bool) *topModel {
		return &topModel{ctx: t.Context(), svc: watched{}, every: time.Second, seen: seen, paint: painter(color), width: 100, height: 30}
	}
	press := func(m *topModel, keys ...rune) {
		for _, k := range keys {
			key := tea.KeyPressMsg{Code: k}
			if k < 127 && k > 32 {
				key.Text = string(k)
			}
			m.Update(key)
		}
	}
	t.Run("the screen cannot control the terminal, and fits it", func(t *testing.T) {
		m := model(false)
		for range topLists {
			screen := m.screen()
			if what := obeyed(screen); what != "" {
				t.Errorf("the screen has %q", what)
			}
			if !strings.Contains(screen, "] $9.0000 spent of $10.0000 daily, label ") {
				t.Errorf("the screen lacks the budget: %s", screen)
			}
			lines := strings.Split(screen, "\n")
			for _, l := range lines {
				if runewidth.StringWidth(l) > 100 {
					t.Errorf("%d wide: %s", runewidth.StringWidth(l), l)
				}
			}
			if len(lines) > 30 {
				t.Errorf("%d lines", len(lines))
			}
			press(m, tea.KeyTab)
		}
	})
	t.Run("a snapshot names no keys", func(t *testing.T) {
		var out strings.Builder
		if err := (&app{out: &out}).top(t.Context(), watched{}, time.Second); err != nil || !strings.Contains(out.String(), "[instances]") || strings.Contains(out.String(), "quit") {
			t.Errorf("%v:\n%s", err, &out)
		}
	})
	t.Run("the screen has colours only on request", func(t *testing.T) {
		if colored := model(true).screen(); !strings.Contains(colored, "\x1b[34m") {
			t.Error(colored)
		}
		if plain := model(false).screen(); strings.Contains(plain, "\x1b") {
			t.Error(plain)
		}
	})
	t.Run("keys change the list and scroll it", func(t *testing.T) {
		m := model(false)
		for _, want := range []string{"[instances]", "[jobs]", "[reasons]", "[events]", "[instances]"} {
			if !strings.Contains(m.screen(), want) {
				t.Errorf("no %s in %s", want, m.screen())
			}
			press(m, tea.KeyTab)
		}
		m = model(false)
		press(m, 'j', 'j', 'k')
		if m.screen(); m.from != 1 {
			t.Errorf("from %d", m.from)
		}
		for range 100 {
			press(m, tea.KeyPgDown)
		}
		if m.screen(); m.from != 100-m.rows() {
			t.Errorf("from %d of 100", m.from)
		}
		press(m, tea.KeyHome)
		if m.screen(); m.from != 0 {
			t.Errorf("from %d", m.from)
		}
		if _, cmd := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil || cmd() != tea.Quit() {
			t.Error("q does not quit")
		}
	})
	t.Run("a paused screen does not change, and errors are shown", func(t *testing.T) {
		m := model(false)
		press(m, tea.KeySpace)
		other := seen
		other.status.Fleet = "other"
		m.Update(looked{other, nil})
		if strings.Contains(m.screen(), "other") {
			t.Error("the paused screen changed")
		}
		press(m, tea.KeySpace)
		m.Update(looked{other, nil})
		if !strings.Contains(m.screen(), "other") {
			t.Error("the screen does not resume")
		}
		m.Update(looked{glimpse{}, drover.Errorf(drover.KindUnreachable, "it is gone")})
		if screen := m.screen(); !strings.Contains(screen, "it is gone") || !strings.Contains(screen, "other") {
			t.Error(screen)
		}
	})
}
