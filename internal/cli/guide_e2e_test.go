//go:build e2e

package cli

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/internal/daemon"
)

var updateGuide = flag.Bool("update-guide", false, "write what the guide's commands print into the guide")

// TestGuide follows the guides.
func TestGuide(t *testing.T) {
	for _, name := range []string{"guide", "simulate"} {
		t.Run(name, func(t *testing.T) { followGuide(t, "../../docs/"+name+".md") })
	}
}

// followGuide follows a guide block by block, and checks that every command prints what the guide shows. A block whose
// first line is a comment with a file's name is that file. In a console block, lines after "$ " are commands, followed
// by their output; "…" stands for any lines. Values that differ between runs (times, money, names of instances,
// columns' widths) are not compared.
func followGuide(t *testing.T, path string) {
	t.Parallel()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{path: path, place: newPlace(t), address: freeAddress(t)}
	g.begin()
	t.Cleanup(g.end)
	lines := strings.Split(string(text), "\n")
	var written []string
	for at := 0; at < len(lines); at++ {
		written = append(written, lines[at])
		language, opens := strings.CutPrefix(lines[at], "```")
		if !opens {
			continue
		}
		end := at + 1
		for lines[end] != "```" {
			end++
		}
		block := lines[at+1 : end]
		if language == "console" {
			block = g.console(at+2, block)
		} else if name, ok := strings.CutPrefix(block[0], "# "); ok && !strings.Contains(name, " ") {
			g.write(name, g.here(strings.Join(block, "\n")+"\n"))
		}
		written = append(append(written, block...), "```")
		at = end
	}
	if *updateGuide {
		if err := os.WriteFile(path, []byte(strings.Join(written, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// guide is a reader who types a guide's commands into a shell.
type guide struct {
	*place
	path    string
	address string // instead of the one in the guide, which may be in use on this host
	shell   *exec.Cmd
	in      io.Writer
	out     safeBuffer
}

const guideAddress = "127.0.0.1:8420"

// begin starts the shell.
func (g *guide) begin() {
	g.shell = exec.Command("sh")
	g.shell.Dir = g.dir
	g.shell.Env = append(os.Environ(), "PATH="+searchPath(), "XDG_STATE_HOME="+g.state, "TERM=dumb", "NO_COLOR=1", "TZ=UTC", "HOME="+g.dir)
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g.shell.Stdout, g.shell.Stderr = &g.out, &g.out
	g.shell.WaitDelay = time.Second
	in, err := g.shell.StdinPipe()
	if err == nil {
		err = g.shell.Start()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.in = in
}

// end ends the shell and its background processes.
func (g *guide) end() {
	syscall.Kill(-g.shell.Process.Pid, syscall.SIGTERM)
	g.shell.Wait()
	if !g.t.Failed() {
		os.RemoveAll(filepath.Join(g.state, "drover", "lab"))
	}
}

func (g *guide) here(text string) string { return strings.ReplaceAll(text, guideAddress, g.address) }

// console types a block's commands and returns the block with their real output.
func (g *guide) console(line int, block []string) (real []string) {
	for at := 0; at < len(block); {
		command, ok := strings.CutPrefix(block[at], "$ ")
		if !ok {
			g.t.Fatalf("%s:%d: a command begins with \"$ \", not %q", g.path, line+at, block[at])
		}
		next := at + 1
		for next < len(block) && !strings.HasPrefix(block[next], "$ ") {
			next++
		}
		want := block[at+1 : next]
		got := g.typed(line+at, command)
		real = append(real, block[at])
		switch {
		case *updateGuide && !shows(want, got):
			real = append(real, got...)
		case *updateGuide:
			real = append(real, want...)
		case !shows(want, got):
			g.t.Errorf("%s:%d: %s prints\n%s\ninstead of\n%s", g.path, line+at, command, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		at = next
	}
	return real
}

// typed types a command line and returns its output. After starting a daemon, it waits until the daemon answers.
func (g *guide) typed(line int, command string) []string {
	g.t.Helper()
	const prompt = "guide$ "
	g.out.reset()
	if _, err := io.WriteString(g.in, g.here(command)+"\necho '"+prompt+"'\n"); err != nil {
		g.t.Fatal(err)
	}
	eventually(g.t, time.Minute, fmt.Sprintf("%s:%d: %s has ended", g.path, line, command), func() bool {
		return strings.HasSuffix(g.out.String(), prompt+"\n")
	})
	if strings.HasSuffix(command, "&") {
		eventually(g.t, 20*time.Second, "the daemon of "+command+" answers", func() bool {
			r, err := http.Get("http://" + g.address + "/readyz")
			if err == nil {
				r.Body.Close()
			}
			return err == nil && r.StatusCode == http.StatusOK
		})
	}
	text := strings.TrimSuffix(g.out.String(), prompt+"\n")
	for real, shown := range map[string]string{g.address: guideAddress, g.dir: "~", g.state: "~/.local/state"} {
		text = strings.ReplaceAll(text, real, shown)
	}
	text = regexp.MustCompile(`\b`+regexp.QuoteMeta(daemon.Owner())+`\b`).ReplaceAllString(text, "you")
	if text = strings.TrimRight(text, "\n"); text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// shows reports whether the expected output was printed.
func shows(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == "…":
		return shows(want[1:], got) || len(got) > 0 && shows(want, got[1:])
	case len(got) == 0:
		return false
	}
	return steady(want[0]) == steady(got[0]) && shows(want[1:], got[1:])
}

// changing lists the values that differ between runs, and their replacements.
var changing = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "WHEN"}, // yesterday's times have a date
	{regexp.MustCompile(`\$\d+(\.\d+)?`), "MONEY"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(h|ms|µs|m|s))+\b`), "LONG"},
	{regexp.MustCompile(`\b(run|lab)-[a-z2-7]{5,6}\b`), "$1-NAME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? instance-seconds`), "N instance-seconds"},
	{regexp.MustCompile(`\b\d+%`), "N%"},
	{regexp.MustCompile(`\b\d+(\.\d)?Mi$|\b\d+(\.\d)?Mi `), "SIZE "},
	{regexp.MustCompile(`\b\d+\.\d+%?`), "FRACTION"},
	{regexp.MustCompile(`^(instances|at once|left out|refused)( +\d+)+$`), "$1 N"},
	{regexp.MustCompile(`^token [a-z0-9]{8}|^[a-z0-9]{8}( +ada)`), "token ID$1"},
	{regexp.MustCompile(`\s+`), " "},
}

func steady(line string) string {
	for _, c := range changing {
		line = c.pattern.ReplaceAllString(line, c.as)
	}
	return strings.TrimSpace(line)
}
