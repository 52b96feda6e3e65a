package cli

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the sessions in testdata/script: the ones that rent nothing, and one for each way to run jobs.
func TestScripts(t *testing.T) { runScripts(t, "script") }

// runScripts runs the sessions in a folder of testdata. No session may leave anything behind.
func runScripts(t *testing.T, folder string) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", folder),
		Setup: func(env *testscript.Env) error {
			state := filepath.Join(env.WorkDir, ".state")
			env.Setenv("PATH", searchPath())
			env.Setenv("XDG_STATE_HOME", state)
			env.Defer(func() {
				if err := nothingLeft(state); err != nil {
					env.T().Log(err)
					env.T().FailNow()
				}
			})
			return os.MkdirAll(state, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"json":    isJSON,
			"nothing": isUntouched,
			"until":   untilPrinted,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// exits runs a command and checks its exit code: exits 2 drover run.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if code != want {
		ts.Fatalf("exit code %d, not %d", code, want)
	}
}

// untilPrinted repeats a command until its output matches a pattern: until 'no instances' drover instances.
func untilPrinted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND ARG…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	for end := time.Now().Add(20 * time.Second * busy); ; time.Sleep(200 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if pattern.MatchString(ts.ReadFile("stdout") + ts.ReadFile("stderr")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("still not printed: %s (%v)", args[0], err)
		}
	}
}

// isJSON checks that stdout is one JSON value and nothing else.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: json")
	}
	var v any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &v); err != nil {
		ts.Fatalf("stdout is not JSON: %v", err)
	}
}

// isUntouched checks that there is no sign of a run: no results, no state, no process.
func isUntouched(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: nothing")
	}
	ts.Check(leftovers(ts.Getenv("XDG_STATE_HOME")))
	if _, err := os.Stat(ts.MkAbs("drover-out")); err == nil {
		ts.Fatalf("there are results in drover-out")
	}
}
