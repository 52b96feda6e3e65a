package kit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// refused is an error of a cloud.
type refused struct{ kit.Answer }

func (r refused) Error() string { return r.String() }

var table = kit.Errors{
	Market: drover.OnDemand,
	ByName: true,
	Again:  kit.In(3 * time.Second),
	Hints:  map[drover.ErrorKind]string{drover.KindQuota: "ask for more", drover.KindCapacity: "wait"},
	Read: func(err error) (kit.Answer, bool) {
		var r refused
		ok := errors.As(err, &r)
		return r.Answer, ok
	},
	Table: append(append(append(
		kit.Means(drover.KindQuota, drover.ScopeAll, "Limit: of *cores").OfMarket(),
		kit.Means(drover.KindCapacity, drover.ScopeType, "Full*", "503: full").WithHint("look elsewhere")...),
		kit.Means(drover.KindNotFound, "", "404")...),
		kit.Means(drover.KindRateLimit, "", "429")...),
}

func TestErrors(t *testing.T) {
	drivertest.Classifies(t, table.Classify)
	for name, tt := range map[string]struct {
		answer kit.Answer
		want   drover.Error
	}{
		"a code and words, in any case": {kit.Answer{Code: "limit", Message: "A limit OF 8 Cores."}, drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll, Market: drover.Spot, Hint: "ask for more"}},
		"a code with other words":       {kit.Answer{Code: "Limit"}, drover.Error{Kind: drover.KindTransient}},
		"a code that matches a prefix":  {kit.Answer{Code: "FullZone", Status: 404}, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot, Hint: "look elsewhere"}},
		"a status with words":           {kit.Answer{Status: 503, Message: "we are full"}, drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: drover.Spot, Hint: "look elsewhere"}},
		"a status":                      {kit.Answer{Status: 404, Code: "Other"}, drover.Error{Kind: drover.KindNotFound}},
		"an unknown answer":             {kit.Answer{Status: 503}, drover.Error{Kind: drover.KindTransient}},
	} {
		t.Run(name, func(t *testing.T) {
			got := *drover.AsError(table.ClassifyIn("do", drover.Spot, refused{tt.answer}), "")
			tt.want.Message = "do: " + tt.answer.String()
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("a cloud with one market sets it in every error about types", func(t *testing.T) {
		if e := drover.AsError(table.Classify("do", refused{kit.Answer{Code: "Full"}}), ""); e.Market != drover.OnDemand {
			t.Errorf("%+v", e)
		}
	})
	t.Run("not found is invalid for a create and success for a destroy", func(t *testing.T) {
		missing := refused{kit.Answer{Status: 404}}
		if got := drover.KindOf(table.ClassifyCreate("make", drover.Spot, missing)); got != drover.KindInvalid {
			t.Error(got)
		}
		if got := drover.KindOf(table.ClassifyCreate("make", drover.Spot, drover.Errorf(drover.KindNotFound, "x"))); got != drover.KindNotFound {
			t.Error(got)
		}
		if err := table.Gone("destroy", missing); err != nil {
			t.Error(err)
		}
		if err := table.Gone("destroy", errors.New("x")); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	t.Run("the retry time is the cloud's or the table's default", func(t *testing.T) {
		for retry, want := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Minute: time.Minute} {
			e := drover.AsError(table.Classify("do", refused{kit.Answer{Status: 429, Retry: retry}}), "")
			if wait := time.Until(e.RetryAt.Std()); wait > want || wait < want-time.Second {
				t.Errorf("in %v, want %v", wait, want)
			}
		}
	})
	t.Run("an error without an answer has no kind", func(t *testing.T) {
		if table.KindOf(nil) != "" || table.KindOf(errors.New("x")) != "" || table.KindOf(drover.Errorf(drover.KindQuota, "x")) != drover.KindQuota {
			t.Error("an error has the wrong kind")
		}
	})
}

func TestAnswer(t *testing.T) {
	for want, a := range map[string]kit.Answer{
		"Code: words": {Code: "Code", Status: 400, Message: " words "}, "HTTP 502: Bad Gateway": {Status: 502}, "Code: the cloud gave no details": {Code: "Code"}, "words": {Message: "words"},
		strings.Repeat("x", 500) + "…": {Message: strings.Repeat("x", 501)},
	} {
		if got := a.String(); got != want {
			t.Errorf("%+v is %q", a, got)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"debian", "debian", true}, {"debian", "debian-12", false}, {"debian-*", "debian-12", true}, {"*12*", "debian-12-a", true}, {"*12", "debian-12-a", false},
		{"d*n*2", "debian-12", true}, {"d*x*2", "debian-12", false}, {"a*a", "a", false}, {"*", "", true}, {"", "", true}, {"x*", "debian", false},
		{"a*c", "a/b[c", true}, {"[ab]", "a", false}, {"?", "a", false},
	} {
		if kit.MatchGlob(tt.pattern, tt.text) != tt.want {
			t.Errorf("%q, %q: not %v", tt.pattern, tt.text, tt.want)
		}
	}
}
