package drover_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"drover"
)

// covers C5
func TestErrorKinds(t *testing.T) {
	kinds := constants(t, "ErrorKind")
	t.Run("every kind has an explicit outcome", func(t *testing.T) {
		// A kind that is missing from the table has the outcome of an internal error.
		for _, k := range kinds {
			if kind := drover.ErrorKind(k); kind != drover.KindInternal && kind.HTTPStatus() == 500 {
				t.Errorf("%s has none: add a line to the table in errors.go", k)
			}
		}
	})
	t.Run("the table in docs/reasons.md matches the code", func(t *testing.T) {
		var documented []string
		for _, row := range table(t, "docs/reasons.md", "Kinds of error") {
			kind := strings.Trim(row[0], "`")
			documented = append(documented, kind)
			k := drover.ErrorKind(kind)
			if row[1] != strconv.Itoa(k.HTTPStatus()) || row[2] != strconv.Itoa(k.ExitCode()) {
				t.Errorf("%s is %d and %d, the table says %s and %s", kind, k.HTTPStatus(), k.ExitCode(), row[1], row[2])
			}
		}
		if !slices.Equal(documented, kinds) {
			t.Errorf("the table has %v, the code %v, in this order", documented, kinds)
		}
	})
	t.Run("exit codes are in the documented range", func(t *testing.T) {
		for _, k := range kinds {
			if code := drover.ErrorKind(k).ExitCode(); code < 1 || code > 4 {
				t.Errorf("%s has exit code %d", k, code)
			}
		}
	})
	t.Run("an unknown kind, from a newer program, is an internal error", func(t *testing.T) {
		if k := drover.ErrorKind("of tomorrow"); k.HTTPStatus() != 500 || k.ExitCode() != 1 {
			t.Errorf("got %d, %d", k.HTTPStatus(), k.ExitCode())
		}
	})
}

func TestError(t *testing.T) {
	quota := &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeZone, Message: "no more here"}
	t.Run("a wrapped error keeps its kind and says what we were doing", func(t *testing.T) {
		got := drover.AsError(fmt.Errorf("creating lab-1: %w", quota), drover.KindInternal)
		if got.Kind != drover.KindQuota || got.Scope != drover.ScopeZone || got.Message != "creating lab-1: no more here" {
			t.Errorf("got %+v", got)
		}
		if quota.Message != "no more here" {
			t.Error("the wrapped error has changed")
		}
	})
	t.Run("an error without a kind gets the given one", func(t *testing.T) {
		if got := drover.AsError(errors.New("eof"), drover.KindTransient); got.Kind != drover.KindTransient || got.Message != "eof" {
			t.Errorf("got %+v", got)
		}
		if drover.KindOf(errors.New("eof")) != drover.KindInternal {
			t.Error("without a given kind, it is not internal")
		}
		if drover.KindOf(nil) != "" {
			t.Error("a nil error has a kind")
		}
	})
	t.Run("a hint is for the reader and not part of the message", func(t *testing.T) {
		hinted := quota.WithHint("ask for %d", 3)
		if hinted.Hint != "ask for 3" || hinted.Error() != quota.Error() || quota.Hint != "" {
			t.Errorf("got %+v from %+v", hinted, quota)
		}
		if hinted.Explained() != "no more here; ask for 3" || quota.Explained() != "no more here" {
			t.Errorf("explained: %q, %q", hinted.Explained(), quota.Explained())
		}
	})
}
