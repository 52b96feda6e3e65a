package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func as(t *testing.T, user string) context.Context {
	return drover.WithIdentity(t.Context(), drover.Identity{User: user, Role: drover.RoleSubmit})
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// reading returns a user's batch of one job that has an input with these contents.
func reading(user, contents string) drover.Submission {
	spec := drover.JobSpec{
		Name: "read", Command: []string{"cat", "in"}, Priority: 1, Attempts: 1, Spot: drover.SpotPrefer, Resources: drover.Resources{CPU: 1},
		Files: []drover.File{{Path: "in", Mode: 0o600, Size: int64(len(contents)), Hash: hashOf(contents)}},
	}
	return drover.Submission{Batch: drover.Batch{Name: "b", User: user, Jobs: []drover.JobSpec{spec}}}
}

func TestInputsBelongToTheirSenders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	const secret = "the secrets of ada"
	hash := hashOf(secret)
	must(0, c.PutInput(as(t, "ada"), hash, strings.NewReader(secret)))(t)
	missing := func(user string) []string { return must(c.MissingInputs(as(t, user), []string{hash, hash}))(t) }

	t.Run("a user who has not sent them does not learn that they exist", func(t *testing.T) {
		if diff := cmp.Diff([][]string{{}, {hash}}, [][]string{missing("ada"), missing("eve")}); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nor may that user refer to them by hash", func(t *testing.T) {
		if _, err := c.Submit(as(t, "eve"), reading("eve", secret)); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("submitting: %v", err)
		}
	})
	t.Run("sending other contents under that hash changes nothing", func(t *testing.T) {
		if err := c.PutInput(as(t, "eve"), hash, strings.NewReader("a guess")); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("sending: %v", err)
		}
		if diff := cmp.Diff([]string{hash}, missing("eve")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a user who sends the same may use them, and they are stored once", func(t *testing.T) {
		must(0, c.PutInput(as(t, "bob"), hash, strings.NewReader(secret)))(t)
		must(c.Submit(as(t, "bob"), reading("bob", secret)))(t)
		var kept []string
		must(0, f.cfg.Inputs.Each(time.Now().Add(time.Hour), func(hashes []string) error { kept = append(kept, hashes...); return nil }))(t)
		if diff := cmp.Diff([]string{hash}, kept); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an administrator may submit for others what either has sent", func(t *testing.T) {
		admin := drover.WithIdentity(t.Context(), drover.Identity{User: "root", Role: drover.RoleAdmin})
		must(c.Submit(admin, reading("ada", secret)))(t)
		if _, err := c.Submit(admin, reading("eve", secret)); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("for a user who has not: %v", err)
		}
	})
}

func TestUnusedInputsAreSweptAfterADay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	for _, contents := range []string{"used", "unused", "shared"} {
		must(0, c.PutInput(as(t, "ada"), hashOf(contents), strings.NewReader(contents)))(t)
	}
	must(0, c.PutInput(as(t, "bob"), hashOf("shared"), strings.NewReader("shared")))(t)
	must(c.Submit(as(t, "ada"), reading("ada", "used")))(t)
	must(c.Submit(as(t, "bob"), reading("bob", "shared")))(t)
	if _, _, err := f.cfg.Inputs.PutFile(t.Context(), write(t, "a crash left it")); err != nil {
		t.Fatal(err)
	}

	hashes := []string{hashOf("used"), hashOf("unused"), hashOf("shared"), hashOf("a crash left it")}
	there := func() (list []bool) {
		for _, h := range hashes {
			list = append(list, f.cfg.Inputs.Has(h))
		}
		return list
	}
	must(0, c.SweepInputs(t.Context(), time.Now().Add(23*time.Hour)))(t)
	if diff := cmp.Diff([]bool{true, true, true, true}, there()); diff != "" {
		t.Errorf("within the day: %s", diff)
	}
	must(0, c.SweepInputs(t.Context(), time.Now().Add(25*time.Hour)))(t)
	if diff := cmp.Diff([]bool{true, false, true, false}, there()); diff != "" {
		t.Errorf("after it: %s", diff)
	}
	if got := must(c.MissingInputs(as(t, "ada"), hashes))(t); len(got) != 3 { // only bob still has the shared input
		t.Errorf("ada's missing inputs: %q", got)
	}
}

func write(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "file")
	must(0, os.WriteFile(path, []byte(text), 0o600))(t)
	return path
}
