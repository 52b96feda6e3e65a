package kit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// status is a network that answers every request with this status.
type status int

func (s status) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(s), Status: http.StatusText(int(s))}, nil
}

func TestGate(t *testing.T) {
	var counted []string
	open := func(rates map[string]kit.Rate) kit.Gate {
		counted = nil
		return kit.Gate{Limiter: kit.NewRateLimiter(rates, 1), Metric: func(call string, err error) {
			counted = append(counted, fmt.Sprint(call, " ", err))
		}}
	}
	expect := func(t *testing.T, want ...string) {
		t.Helper()
		if !slices.Equal(counted, want) {
			t.Errorf("counted %q, want %q", counted, want)
		}
	}
	failed := errors.New("no")
	t.Run("a call is made and counted with its result", func(t *testing.T) {
		g := open(nil)
		if err := g.Pass(t.Context(), "a", func() error { return failed }); err != failed {
			t.Error(err)
		}
		expect(t, "a no")
	})
	t.Run("a call that exceeds a rate is neither made nor counted", func(t *testing.T) {
		g := open(map[string]kit.Rate{"few": {Burst: 1, PerSecond: 1}})
		made := 0
		do := func() error { made++; return nil }
		first, second := g.Pass(t.Context(), "a", do, "many", "few"), g.Pass(t.Context(), "a", do, "many", "few")
		if first != nil || drover.KindOf(second) != drover.KindRateLimit || made != 1 {
			t.Errorf("%v, then %v, after %d calls", first, second, made)
		}
		expect(t, "a <nil>")
	})
	t.Run("a cancelled call is not made", func(t *testing.T) {
		g := open(nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Pass(ctx, "a", func() error { return nil }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		expect(t)
	})
	t.Run("a request is counted by its status, and its answer is unchanged", func(t *testing.T) {
		g := open(nil)
		for _, s := range []status{http.StatusOK, http.StatusTeapot} {
			if answer, err := g.Send(httptest.NewRequest("GET", "http://x/", nil), s, "a"); err != nil || answer.StatusCode != int(s) {
				t.Errorf("%v, %v", answer, err)
			}
		}
		expect(t, "a <nil>", "a I'm a teapot")
	})
	t.Run("a gate without rates or metric passes every call", func(t *testing.T) {
		if err := (kit.Gate{}).Pass(t.Context(), "a", func() error { return nil }, "rate"); err != nil {
			t.Error(err)
		}
	})
}

func TestPrepay(t *testing.T) {
	g := kit.Gate{Limiter: kit.NewRateLimiter(map[string]kit.Rate{"all": {Burst: 3, PerMinute: 1}}, 1)}
	pass := func(ctx context.Context) error { return g.Pass(ctx, "a", func() error { return nil }, "all") }
	ctx, err := g.Prepay(t.Context(), "all", 2)
	drivertest.Must(t, err)
	if _, err := g.Prepay(t.Context(), "all", 2); drover.KindOf(err) != drover.KindRateLimit {
		t.Errorf("more calls were reserved than are left: %v", err)
	}
	if other := pass(t.Context()); other != nil {
		t.Error(other)
	}
	if first, second, third := pass(ctx), pass(ctx), pass(ctx); first != nil || second != nil || drover.KindOf(third) != drover.KindRateLimit {
		t.Errorf("%v, %v, %v", first, second, third)
	}
}

func TestTransport(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) }))
	defer server.Close()
	var counted []string
	out := &kit.Transport{
		Gate: kit.Gate{Limiter: kit.NewRateLimiter(map[string]kit.Rate{"all": {Burst: 1, PerMinute: 1}}, 1), Metric: func(call string, _ error) { counted = append(counted, call) }},
		Next: http.DefaultTransport, Token: drover.NewSecret("t"), Name: func(r *http.Request) string { return r.Method + " x" },
		Rates: func(string) []string { return []string{"all"} },
	}
	client := &http.Client{Transport: out}
	answer, err := client.Get(server.URL)
	drivertest.Must(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); string(body) != "Bearer t" || err != nil || !slices.Equal(counted, []string{"GET x"}) {
		t.Errorf("%s, %v, counted %q", body, err, counted)
	}
	if _, err := client.Get(server.URL); drover.KindOf(err) != drover.KindRateLimit {
		t.Error(err)
	}
}

// endless is a network whose answers never end.
type endless struct{}

func (endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: forever{}}, nil
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return len(p), nil }
func (forever) Close() error               { return nil }

func TestAnswersAreLimited(t *testing.T) {
	res, err := kit.Bounded(endless{}).RoundTrip(nil)
	drivertest.Must(t, err)
	const maxAnswer = 64 << 20
	read, buffer := 0, make([]byte, 1<<20)
	for n := 1; n > 0 && read <= 2*maxAnswer; read += n {
		n, err = res.Body.Read(buffer)
	}
	if read != maxAnswer || err != kit.ErrTooLarge {
		t.Errorf("read %d bytes, then %v", read, err)
	}
}
