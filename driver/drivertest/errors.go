package drivertest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver/kit"
)

// Errors compares a driver's table of errors with its page in docs/clouds, and tests what all drivers' errors have in
// common. The function answer makes the error that the driver would get from an answer; nil: no call of this cloud can
// get that answer.
func Errors(t *testing.T, page string, e *kit.Errors, answer func(kit.Answer) error) {
	shown := ReadPage(t, page)
	t.Run("the page shows the table", func(t *testing.T) {
		var want [][2]string
		for _, r := range e.Table {
			class := string(r.Kind)
			if r.Scope != "" {
				class += ", " + string(r.Scope)
			}
			if r.Market {
				class += ", of its market"
			}
			want = append(want, [2]string{r.Says, class})
		}
		got := shown.Classes(t)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Fatalf("answer %d under \"Errors\": the page continues with %q, the driver with %q", i+1, got[min(i, len(got)):], want[min(i, len(want)):])
			}
		}
		shown.Sourced(t, "Errors")
	})
	t.Run("every response in the table has its class", func(t *testing.T) {
		for _, r := range e.Table {
			classified(t, e, r, answer)
		}
	})
	t.Run("a rate limit has a retry time, from the cloud or from the driver", func(t *testing.T) {
		for _, r := range e.Table {
			if err := answer(exampleOf(r)); err != nil && r.Kind == drover.KindRateLimit {
				if at := drover.AsError(e.Classify("", err), "").RetryAt; at <= drover.TimeOf(time.Now()) {
					t.Errorf("%s: the retry time %v is not in the future", r.Says, at)
				}
			}
		}
	})
	t.Run("an answer that the table does not contain is transient", func(t *testing.T) {
		if got := drover.KindOf(e.Classify("", answer(kit.Answer{Status: 418, Code: "Weird", Message: "teapot"}))); got != drover.KindTransient {
			t.Error(got)
		}
	})
	Classifies(t, e.Classify)
}

// classified reports an error if a row's answer is classified by another row.
func classified(t *testing.T, e *kit.Errors, r kit.Row, answer func(kit.Answer) error) {
	t.Helper()
	a := exampleOf(r)
	told := e.Error("try it", drover.Spot, a)
	if err := answer(a); err != nil {
		told = drover.AsError(e.ClassifyIn("try it", drover.Spot, fmt.Errorf("wrapped: %w", err)), drover.KindInternal)
	}
	ofMarket := r.Market || r.Scope == drover.ScopeType || r.Scope == drover.ScopeQuotaGroup
	if told.Kind != r.Kind || told.Scope != r.Scope || (told.Market == drover.Spot) != ofMarket || r.Hint != "" && told.Hint != r.Hint {
		t.Errorf("%s is classified as %+v", r.Says, told)
	}
	if !strings.HasPrefix(told.Message, "try it: ") || !strings.Contains(told.Message, a.Message) {
		t.Errorf("%s has the message %q", r.Says, told.Message)
	}
}

// exampleOf returns an answer that a row matches.
func exampleOf(r kit.Row) (a kit.Answer) {
	code, words, _ := strings.Cut(r.Says, ": ")
	a.Message = "It is said: " + strings.ReplaceAll(words, "*", " some other ") + ", and so on."
	if status, err := strconv.Atoi(code); err == nil {
		a.Status = status
	} else {
		a.Code = strings.ReplaceAll(code, "*", "X")
	}
	return a
}
