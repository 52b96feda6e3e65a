package pool

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"drover"
)

// stoppedViews returns stopped instances that may be started, one per zone, numbered from 10, with these prices.
func stoppedViews(zones string, prices ...drover.Money) (all []View) {
	for i, price := range prices {
		all = append(all, View{Place: place(zones[i : i+1]), ID: int64(10 + i), Template: "new", Price: price, Stopped: true, Startable: true})
	}
	return all
}

// covers D2
func TestStopped(t *testing.T) {
	keeps := func(n int) Spec { return spec(func(s *Spec) { s.Stopped = n }) }
	cheapest := func(n int) Spec { s := keeps(n); s.Spread = drover.SpreadCheapest; return s }
	able := func(views []View) []View { return with(views, func(v *View) { v.Stoppable = true }) }
	for name, c := range map[string]struct {
		in       Input
		starts   []int64
		stops    []int64
		releases []Release
		demands  int
	}{
		"a stopped instance is started before another is demanded, and the reserve is refilled": {
			in: Input{Spec: keeps(1), Count: 1, Views: stoppedViews("a", 5)}, starts: []int64{10}, demands: 1,
		},
		"if none is to be kept, all go, and one is rented": {
			in: Input{Spec: keeps(0), Count: 2, Views: slices.Concat(some(1, 1, "a"), stoppedViews("ab", 1, 9))}, releases: []Release{{10, Unkept}, {11, Unkept}}, demands: 1,
		},
		"in equally full zones, the cheapest is started": {
			in: Input{Spec: keeps(3), Count: 1, Views: stoppedViews("abc", 7, 3, 5)}, starts: []int64{11}, demands: 1,
		},
		"the emptiest zone comes before the cheapest": {
			in: Input{Spec: keeps(2), Count: 2, Views: slices.Concat(some(1, 1, "a"), stoppedViews("ab", 1, 9))}, starts: []int64{11}, demands: 1,
		},
		"with the cheapest spread, the cheapest comes first": {
			in: Input{Spec: cheapest(2), Count: 2, Views: slices.Concat(some(1, 1, "a"), stoppedViews("ab", 1, 9))}, starts: []int64{10}, demands: 1,
		},
		"a ready instance beyond the number is stopped": {
			in: Input{Spec: keeps(1), Count: 1, Views: able(some(1, 2, "a"))}, stops: []int64{2},
		},
		"surplus stopped instances go": {
			in: Input{Spec: keeps(1), Count: 0, Views: stoppedViews("ab", 1, 1)}, releases: []Release{{11, Unkept}},
		},
		"stopped instances of an older template go": {
			in: Input{Spec: keeps(1), Count: 0, Views: with(stoppedViews("a", 1), func(v *View) { v.Template = "old" })}, releases: []Release{{10, Outdated}}, demands: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Now, c.in.Zones = now, open("a", "b", "c")
			got := Reconcile(c.in)
			for _, diff := range []string{gocmp.Diff(c.starts, got.Starts), gocmp.Diff(c.stops, got.Stops), gocmp.Diff(c.releases, got.Releases), gocmp.Diff(c.demands, len(got.Demands))} {
				if diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
