//go:build mutants

package simtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	wanted = flag.String("mutants", "", "mutants to try, by name, separated by commas; default: all")
	turn   = flag.String("turn", "", "try only five mutants: the number of the group, from 0")
)

// perTurn is how many mutants each turn tries.
const perTurn = 5

// enough is the number of worlds of each kind within which a mutant must be caught.
const enough = 2000

// TestMutants builds the worlds around each mutant, without changing the product's sources, and expects them to fail.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range chosen(t, readMutants(t)) {
		t.Run(m.name, func(t *testing.T) {
			began := time.Now()
			binary := m.build(t, root)
			built := time.Since(began)
			said := m.hunt(t, binary)
			t.Logf("%s: caught by %s after %v, built in %v\n%s", m.name, said.by, (time.Since(began) - built).Round(10*time.Millisecond),
				built.Round(10*time.Millisecond), said.how)
		})
	}
}

// chosen returns the requested mutants.
func chosen(t *testing.T, all []mutant) []mutant {
	switch {
	case *wanted != "":
		names := strings.Split(*wanted, ",")
		for _, name := range names {
			if !slices.ContainsFunc(all, func(m mutant) bool { return m.name == name }) {
				t.Fatalf("there is no mutant %q", name)
			}
		}
		return slices.DeleteFunc(all, func(m mutant) bool { return !slices.Contains(names, m.name) })
	case *turn == "":
		return all
	}
	n, err := strconv.Atoi(*turn)
	if err != nil || n < 0 {
		t.Fatalf("turn %q is not a number from 0 on", *turn)
	}
	var five []mutant
	for i := range perTurn {
		five = append(five, all[(n*perTurn+i)%len(all)])
	}
	return five
}

// build compiles the worlds around the mutant.
func (m mutant) build(t *testing.T, root string) (binary string) {
	text, err := m.variant(root)
	if err != nil {
		t.Fatal(err)
	}
	source, folder := filepath.Join(root, m.source), t.TempDir()
	broken, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
	swaps, err := json.Marshal(map[string]map[string]string{"Replace": {source: broken}})
	err = errors.Join(err, os.WriteFile(broken, []byte(text), 0o600), os.WriteFile(overlay, swaps, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(folder, "worlds.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+m.worlds)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the mutant: %v\n%s", err, out)
	}
	return binary
}

// catch is what found a mutant.
type catch struct{ by, how string }

var (
	seedFailed = regexp.MustCompile(`(?m)seed (\d+): (.*)$`)
	testFailed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
)

// huntFor limits the hunt for a mutant, since a mutant's world may never come to rest.
const huntFor = 5 * time.Minute

// hunts are the worlds that look for a mutant, in this order: some quick ones first, then crowds, then the rest.
var hunts = []struct {
	tests string
	seeds int
}{
	{"^(TestEveryJobEnds|TestAFleet|TestWhatever)", enough / 10},
	{"^TestEveryJobOfACrowd", enough},
	{"^(TestEveryJobEnds|TestAFleet|TestWhatever)", enough},
}

// hunt runs the worlds until one fails.
func (m mutant) hunt(t *testing.T, binary string) catch {
	ctx, cancel := context.WithTimeout(t.Context(), huntFor)
	defer cancel()
	for _, h := range hunts {
		run := exec.CommandContext(ctx, binary, "-test.run", h.tests, "-seeds", fmt.Sprint(h.seeds))
		if m.worlds == "internal/simtest" {
			run.Args = append(run.Args, "-shorten=false")
		}
		var said bytes.Buffer
		run.Stdout, run.Stderr = &said, &said
		err := run.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			t.Fatalf("the mutant was not caught within %v", huntFor)
		case !errors.As(err, &exit):
			t.Fatal(err)
		}
		seed, test := seedFailed.FindStringSubmatch(said.String()), testFailed.FindStringSubmatch(said.String())
		if seed == nil || test == nil {
			t.Fatalf("the worlds failed in another way: %v\n%s", err, said.String())
		}
		return catch{fmt.Sprintf("seed %s of %s", seed[1], test[1]), seed[2]}
	}
	t.Fatalf("the mutant was not caught within %d worlds of each kind", enough)
	return catch{}
}
