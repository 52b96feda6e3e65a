package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
)

func TestCollect(t *testing.T) {
	t.Run("every page is asked for by the token of the one before", func(t *testing.T) {
		all, err := driver.Collect(func(token string) ([]string, string, error) {
			n, _ := strconv.Atoi(token)
			return []string{token}, map[bool]string{true: strconv.Itoa(n + 1)}[n < 2], nil
		})
		if diff := cmp.Diff([]string{"", "1", "2"}, all); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
	t.Run("what comes to an early end is nothing", func(t *testing.T) {
		all, err := driver.Collect(func(token string) ([]int, string, error) {
			if token != "" {
				return nil, "", errors.New("gone")
			}
			return []int{1}, "more", nil
		})
		if err == nil || all != nil {
			t.Error(all, err)
		}
	})
	t.Run("an answer without an end is none", func(t *testing.T) {
		if _, err := driver.Collect(func(string) ([]int, string, error) { return []int{1}, "again", nil }); err == nil {
			t.Error("it was taken")
		}
	})
}

func TestClassed(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		done bool
	}{
		{"no error stays none", nil, true},
		{"what has a class keeps it", drover.Errorf(drover.KindQuota, "x"), true},
		{"an ended context stays one", fmt.Errorf("asked: %w", context.Canceled), true},
		{"anything else is for the driver", errors.New("x"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told, done := driver.Classed("do", tt.err)
			if done != tt.done || (told != nil) != (done && tt.err != nil) || told != nil && (!errors.Is(told, tt.err) || told.Error() != "do: "+tt.err.Error()) {
				t.Error(told, done)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "17": 17 * time.Second, "900000": time.Hour, "-4": 0, "-9000000000": 0, "soon": 0, "99999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0, now.Add(48 * time.Hour).Format(http.TimeFormat): time.Hour,
	} {
		if got := driver.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// ownKeys are a driver's, of which nothing was said.
type ownKeys struct{ zone string }

func (k *ownKeys) Default() { k.zone = "a" }

func TestBegin(t *testing.T) {
	for fleet, fits := range map[string]bool{"lab-1": true, "LAB": true, "": false, "a b": false, "über": false, "12345678": true, "123456789": false, "a/b": false} {
		var own ownKeys
		o := driver.Options{Name: "c", Fleet: fleet}
		err := o.Begin(8, &own)
		if (err == nil) != fits || fits && (own.zone != "a" || o.Log == nil) {
			t.Errorf("%q: %v, with %+v", fleet, err, own)
		}
	}
	t.Run("what is wrong in the configuration is told as it is", func(t *testing.T) {
		wrong := errors.New("line 3: so")
		o := driver.Options{Fleet: "lab", Decode: func(any) error { return wrong }}
		if err := o.Begin(8, &ownKeys{}); err != wrong {
			t.Error(err)
		}
	})
}
