package kit_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/internal/diskcache"
)

func TestCollect(t *testing.T) {
	t.Run("each page is requested with the previous page's token", func(t *testing.T) {
		all, err := kit.Collect(func(token string) ([]string, string, error) {
			n, _ := strconv.Atoi(token)
			return []string{token}, map[bool]string{true: strconv.Itoa(n + 1)}[n < 2], nil
		})
		if diff := cmp.Diff([]string{"", "1", "2"}, all); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
	t.Run("a failed page makes the whole list fail", func(t *testing.T) {
		all, err := kit.Collect(func(token string) ([]int, string, error) {
			if token != "" {
				return nil, "", errors.New("gone")
			}
			return []int{1}, "more", nil
		})
		if err == nil || all != nil {
			t.Error(all, err)
		}
	})
	t.Run("an endless list fails", func(t *testing.T) {
		if _, err := kit.Collect(func(token string) ([]int, string, error) { return []int{1}, token + "x", nil }); err == nil {
			t.Error("an endless list was accepted")
		}
	})
	t.Run("a page that is its own next page fails at once", func(t *testing.T) {
		requests := 0
		all, err := kit.Collect(func(string) ([]int, string, error) { requests++; return []int{1}, "again", nil })
		if err == nil || all != nil || requests != 2 {
			t.Errorf("%v, %v, after %d requests", all, err, requests)
		}
	})
}

func TestCollectNumbered(t *testing.T) {
	// asked lists the pages that CollectNumbered requests. Each request returns the next number of the last page from
	// lasts.
	asked := func(lasts ...int) (pages []int, all []int, err error) {
		all, err = kit.CollectNumbered(func(n int) ([]int, int, error) {
			last := lasts[min(len(pages), len(lasts)-1)]
			pages = append(pages, n)
			return []int{n * 10}, last, nil
		})
		return pages, all, err
	}
	for _, tt := range []struct {
		name  string
		lasts []int
		pages []int
		all   []int
	}{
		{"a single page is requested once", []int{1}, []int{1}, []int{10}},
		{"an empty list has one page", []int{0}, []int{1}, []int{10}},
		{"pages are read from the last to the first", []int{3}, []int{1, 3, 2, 1}, []int{30, 20, 10}},
		{"a page added meanwhile is read first", []int{2, 3}, []int{1, 2, 3, 2, 1}, []int{30, 20, 10}},
		{"a shrinking list is no error", []int{3, 2, 1}, []int{1, 3, 2, 1}, []int{30, 20, 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pages, all, err := asked(tt.lasts...)
			if diff := cmp.Diff(tt.pages, pages) + cmp.Diff(tt.all, all); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
	t.Run("a list with more than 1000 pages fails", func(t *testing.T) {
		if pages, all, err := asked(1001); err == nil || all != nil || len(pages) > 1 {
			t.Error(len(pages), len(all), err)
		}
	})
	t.Run("a failed page makes the whole list fail", func(t *testing.T) {
		all, err := kit.CollectNumbered(func(n int) ([]int, int, error) {
			return []int{n}, 3, map[int]error{2: errors.New("gone")}[n]
		})
		if err == nil || all != nil {
			t.Error(all, err)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Run("a login key has a fingerprint of sixteen bytes", func(t *testing.T) {
		const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHQ9kqT8Yl0bYp3m0Kp7pZ1x2v3u4t5s6r7q8p9o0n1m drover"
		if got, err := kit.Fingerprint(key); err != nil || got != "ed:9e:62:bd:60:ae:bb:90:ac:58:1f:1c:b3:9a:8f:00" {
			t.Error(got, err)
		}
	})
	for _, key := range []string{"", "ssh-rsa !", "ssh-ed25519"} {
		t.Run("refuses "+strconv.Quote(key), func(t *testing.T) {
			if _, err := kit.Fingerprint(key); drover.KindOf(err) != drover.KindInvalid {
				t.Error(err)
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
		if got := kit.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// ownKeys are a driver's keys without configured values.
type ownKeys struct{ zone string }

func (k *ownKeys) Default() { k.zone = "a" }

func TestBegin(t *testing.T) {
	for fleet, fits := range map[string]bool{"lab-1": true, "LAB": true, "": false, "a b": false, "über": false, "12345678": true, "123456789": false, "a/b": false} {
		var own ownKeys
		o := driver.Options{Name: "c", Fleet: fleet}
		err := kit.Begin(&o, 8, &own)
		if (err == nil) != fits || fits && (own.zone != "a" || o.Log == nil) {
			t.Errorf("%q: %v, with %+v", fleet, err, own)
		}
	}
	t.Run("a configuration error is returned unchanged", func(t *testing.T) {
		wrong := errors.New("line 3: so")
		o := driver.Options{Fleet: "lab", Decode: func(any) error { return wrong }}
		if err := kit.Begin(&o, 8, &ownKeys{}); err != wrong {
			t.Error(err)
		}
	})
}

func TestKeep(t *testing.T) {
	got := kit.Keep(driver.Options{Folder: "f"}, "", "place", []string{"a", "b"})("types", time.Hour)
	if diff := cmp.Diff(diskcache.Options{Folder: "f", Name: "types", Key: " place [a b]", Age: time.Hour}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadersOfClouds(t *testing.T) {
	if at := kit.ReadTime("2026-01-02T03:04:05.5+01:00"); at != drover.TimeOf(time.Date(2026, 1, 2, 2, 4, 5, 5e8, time.UTC)) || kit.ReadTime("today") != 0 {
		t.Error(at)
	}
	for text, want := range map[string]drover.Money{"12": 12 * drover.Dollar, "0.0960000000": 96e6, "0.12345678999": 123456789} {
		if got, err := kit.ReadPrice(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := kit.ReadPrice("much"); err == nil {
		t.Error("a word was accepted as a price")
	}
	if kit.Given("") != nil || *kit.Given("x") != "x" || kit.Value[int](nil) != 0 || kit.Value(kit.Given(2)) != 2 {
		t.Error("Given does not return nil for a zero value, or Value does not return zero for nil")
	}
	month := drover.Money(7300)
	if kit.PerHour(&month, 5) != 10 || kit.PerHour(nil, 5) != 5 {
		t.Error("the configured monthly price does not replace the listed hourly one")
	}
	if got := kit.Each([]int{1, 2}, strconv.Itoa); !slices.Equal(got, []string{"1", "2"}) {
		t.Error(got)
	}
	slow, fast := kit.Rate{Burst: 1, PerSecond: 1}, kit.Rate{Burst: 2, PerSecond: 2}
	if got := kit.Rates(map[kit.Rate][]string{slow: {"a"}, fast: {"b", "c"}}); !maps.Equal(got, map[string]kit.Rate{"a": slow, "b": fast, "c": fast}) {
		t.Error(got)
	}
}
