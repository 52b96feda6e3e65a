package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover"
)

// reasons collects the reasons that occur in scenarios, by code and with figures replaced, and which of them are
// incomplete.
type reasons struct {
	said    map[string]map[string]bool
	lacking map[string]bool
}

// hear collects the reasons in a decision, a state or an explanation.
func (r *reasons) hear(t *testing.T, all ...any) {
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	r.find(v)
}

func (r *reasons) find(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			r.find(one)
		}
	case map[string]any:
		code, isReason := v["code"].(string)
		if text, ok := v["text"].(string); ok && isReason && code != "" { // without a code it is no reason
			if r.said[code] == nil {
				r.said[code] = map[string]bool{}
			}
			r.said[code][alike(text)] = true
		}
		for _, one := range v {
			r.find(one)
		}
	}
}

var figures = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

// alike replaces the figures in a text.
func alike(text string) string { return figures.ReplaceAllString(text, "#") }

// askAll makes a player explain everything, and collects the reasons.
func (r *reasons) askAll(p *player) {
	if r == nil {
		return
	}
	s := p.e.State()
	subjects := []string{"", "c", "d", "c/*", "d/*"}
	for _, in := range s.Instances {
		subjects = append(subjects, in.Name)
	}
	for _, j := range s.Jobs {
		subjects = append(subjects, drover.JobID{Number: j.Number, Index: -1}.String())
	}
	for _, subject := range subjects {
		all, _ := p.e.ExplainSubject(subject, 1000)
		r.hear(p.t, all)
		for _, x := range all {
			r.check(x.Subject, x.Reasons...)
		}
	}
	status := p.e.Status()
	for _, w := range slices.Concat(status.Waiting, status.Standing) {
		r.hear(p.t, w)
		r.check("status", w.Reason)
	}
}

// check records what reasons lack.
func (r *reasons) check(subject string, all ...drover.Reason) {
	for _, why := range all {
		if lacks := missingFrom(why); lacks != "" {
			r.lacking[fmt.Sprintf("%s lacks %s: %s: %s", alike(subject), lacks, why.Code, alike(why.Text))] = true
		}
	}
}

// missingFrom returns what a reason lacks, or nothing.
func missingFrom(why drover.Reason) string {
	switch {
	case why.Code == "":
		return "a code"
	case strings.TrimSpace(why.Text) == "":
		return "a cause"
	case why.Since == 0 && timeless[why.Code] == "":
		return "a time since when"
	}
	return ""
}

// timeless are the codes of reasons without a start, and why they have none.
var timeless = map[string]string{
	drover.ReasonOffered: "it holds while nothing prevents renting",
	drover.ReasonRest:    "it holds while nothing waits",
}

// documented reads the tables of docs/reasons.md: their codes, and the codes without a remedy.
func documented(t *testing.T) (codes map[string]bool, stuck []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	codes = map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.Trim(line, "| \n"), " | "); strings.HasPrefix(line, "| `") && len(cells) > 1 {
			code := strings.Trim(cells[0], "`")
			codes[code] = true
			if change := cells[len(cells)-1]; change == "–" || len(cells) < 3 {
				stuck = append(stuck, code)
			}
		}
	}
	return codes, stuck
}

// covers D22
func TestEveryReasonOccurs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	heard := &reasons{said: map[string]map[string]bool{}, lacking: map[string]bool{}}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		playTo(t, string(script), heard)
	}
	said := heard.said
	documented, stuck := documented(t)
	t.Run("scenarios produce exactly the codes in docs/reasons.md", func(t *testing.T) {
		met, listed := slices.Sorted(maps.Keys(said)), slices.Sorted(maps.Keys(documented))
		for _, code := range listed {
			if said[code] == nil && code != drover.ReasonDiskFull { // which the controller reports, not the engine
				t.Errorf("no scenario produces %s", code)
			}
		}
		for _, code := range met {
			if !documented[code] {
				t.Errorf("docs/reasons.md has no %s, as in %q", code, slices.Sorted(maps.Keys(said[code])))
			}
		}
	})
	t.Run("every code has a remedy", func(t *testing.T) {
		for _, code := range stuck {
			t.Errorf("docs/reasons.md does not say what changes %s", code)
		}
	})
	t.Run("every reason has a cause and a start", func(t *testing.T) {
		for _, what := range slices.Sorted(maps.Keys(heard.lacking)) {
			t.Error(what)
		}
	})
}
