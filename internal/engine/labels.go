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
	if slices.Equal(names, e.labels) {
		return
	}
	for j := range e.jobs.all() {
		e.ungroup(j)
	}
	e.labels = names
	for j := range e.jobs.all() {
		e.regroup(j)
	}
}

// keyOf names the group that the job's waiting elements are in, but for those that have more memory.
func (e *Engine) keyOf(j *Job) GroupKey {
	key := GroupKey{Shape: j.Shape, Priority: j.Priority, User: j.User, Timeout: j.Timeout, Expected: step(j.Expected), Gang: j.Gang}
	for _, name := range e.labels {
		if value, has := j.Labels[name]; has {
			if key.Labels != "" {
				key.Labels += "\n"
			}
			key.Labels += name + "=" + value
		}
	}
	return key
}
