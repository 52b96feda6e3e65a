package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"

	"drover"
	"drover/internal/daemon"
)

// hostile is a name or output of a job that attacks the terminal: it clears the screen, sets the title, changes the
// direction of writing, and rings the bell.
const hostile = "\x1b[2J\x1b]0;title\a\u009b31m\u202egnp.exe\u2066\U000e0041"

// obeyed returns the parts of a text that a terminal would obey.
func obeyed(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return r
		}
		return -1
	}, text)
}

func TestOutputCannotControlTheTerminal(t *testing.T) {
	j := drover.Job{ID: drover.JobID{Number: 1, Index: -1}, Name: "j", Command: []string{hostile, "plain", "true"}, Labels: map[string]string{"k": hostile}, Reason: &drover.Reason{Text: hostile}}
	for _, form := range []output{outputJSON, outputYAML} {
		t.Run("-o "+string(form)+" escapes texts without changing them", func(t *testing.T) {
			var out bytes.Buffer
			a := &app{out: &out, err: &out, output: form}
			if err := a.print(j); err != nil {
				t.Fatal(err)
			}
			if what := obeyed(out.String()); what != "" {
				t.Errorf("the output has %q", what)
			}
			var back struct {
				Command []string          `json:"command" yaml:"command"`
				Labels  map[string]string `json:"labels" yaml:"labels"`
			}
			read := json.Unmarshal
			if form == outputYAML {
				read = func(b []byte, v any) error { return yaml.Unmarshal(b, v) }
			}
			if err := read(out.Bytes(), &back); err != nil || back.Command[0] != hostile || back.Command[2] != "true" || back.Labels["k"] != hostile {
				t.Errorf("a program reads %+q (%v)\n%s", back, err, out.String())
			}
		})
	}
	t.Run("the summary of a run, with a failed job's last output", func(t *testing.T) {
		s := &session{plan: daemon.RunPlan{Out: t.TempDir()}}
		logs := filepath.Join(s.plan.Out, "logs")
		if err := os.Mkdir(logs, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(logs, "j.out"), []byte("a\tline\n"+hostile+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &app{out: &out, err: &out}
		failed := j
		failed.Attempts = []drover.Attempt{{}}
		a.showFailure(t.Context(), s, failed)
		runSummary{Out: s.plan.Out, Outputs: []string{filepath.Join(s.plan.Out, hostile)}}.print(&out, drover.Summary{})
		if what := obeyed(out.String()); what != "" || !strings.Contains(out.String(), "    a\tline\n") {
			t.Errorf("the output has %q: %q", what, out.String())
		}
	})
}

func TestOtherDevicesAreNotTerminals(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Errorf("%s counts as a terminal", os.DevNull)
	}
}
