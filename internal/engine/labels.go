package engine

import (
	"slices"
	"strings"
)

// labels are the names of the labels that budgets and shares speak of, sorted.
func (s Settings) labels() (names []string) {
	if name := s.Shares.By.Label(); name != "" {
		names = append(names, name)
	}
	for _, b := range s.Budgets {
		if name, _, ok := strings.Cut(b.Label, "="); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// relabel puts jobs in their groups anew if other labels matter now.
func (e *Engine) relabel() {
	names := e.s.Settings.labels()
	if slices.Equal(names, e.queue.Labels()) {
		return
	}
	for j := range e.queue.All() {
		e.ungroup(j)
	}
	e.queue.SetLabels(names)
	for j := range e.queue.All() {
		e.regroup(j)
	}
}
