package driver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// attic is a cloud with leftovers.
type attic struct {
	driver.Cloud
	leftovers []driver.Leftover
	unlisted  error
	removed   []string
}

func (a *attic) Leftovers(context.Context, string) ([]driver.Leftover, error) {
	return a.leftovers, a.unlisted
}

func (a *attic) Remove(_ context.Context, s driver.Leftover) error {
	if s.ID == "stuck" {
		return errors.New("it is in use")
	}
	a.removed = append(a.removed, s.ID)
	return nil
}

// covers C7
func TestReap(t *testing.T) {
	now := drover.TimeOf(time.Unix(1e9, 0))
	leftover := func(id string, age time.Duration, fleet string, shared bool) driver.Leftover {
		return driver.Leftover{Kind: "volume", ID: id, Tags: map[string]string{driver.TagFleet: fleet}, Created: now.Add(-age), Shared: shared}
	}
	fill := func() *attic {
		return &attic{leftovers: []driver.Leftover{
			leftover("stuck", 2*time.Hour, "f", false), leftover("old", time.Hour, "f", false), leftover("new", time.Minute, "f", false),
			leftover("key", 9*time.Hour, "f", true), leftover("theirs", 9*time.Hour, "g", false), {ID: "dateless", Tags: map[string]string{driver.TagFleet: "f"}},
		}}
	}
	for _, tt := range []struct {
		name string
		life driver.FleetState
		want []string
	}{
		{"an active fleet loses its old leftovers", driver.Active, []string{"old"}},
		{"a fleet in an unknown state also loses old shared leftovers", driver.Unknown, []string{"old", "key"}},
		{"an ended fleet loses all its leftovers and other fleets lose none", driver.Ended, []string{"old", "new", "key", "dateless"}},
	} {
		t.Run(tt.name+", even if one removal fails", func(t *testing.T) {
			a := fill()
			reaped, err := driver.Reap(t.Context(), middleware.ForFleet(a, "f"), "f", now, tt.life)
			if err == nil || len(reaped) != len(tt.want) {
				t.Errorf("reaped %v, %v", reaped, err)
			}
			if diff := cmp.Diff(tt.want, a.removed); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("leftovers are removed even if others could not be listed", func(t *testing.T) {
		a := &attic{leftovers: []driver.Leftover{leftover("old", time.Hour, "f", false)}, unlisted: errors.New("not allowed")}
		reaped, err := driver.Reap(t.Context(), middleware.ForFleet(a, "f"), "f", now, driver.Active)
		if !errors.Is(err, a.unlisted) || len(reaped) != 1 {
			t.Errorf("reaped %v, %v", reaped, err)
		}
	})
	t.Run("a cloud that is not a Reaper is left alone", func(t *testing.T) {
		if reaped, err := driver.Reap(t.Context(), struct{ driver.Cloud }{}, "f", now, driver.Ended); reaped != nil || err != nil {
			t.Errorf("got %v, %v", reaped, err)
		}
	})
}

func TestSortPrices(t *testing.T) {
	p := func(from, price int) driver.PricePoint {
		return driver.PricePoint{From: drover.Time(from), Price: drover.Money(price)}
	}
	got := driver.SortPrices([]driver.PricePoint{p(3, 7), p(1, 5), p(2, 5), p(3, 6), p(4, 7), p(1, 5), p(5, 6)})
	if diff := cmp.Diff([]driver.PricePoint{p(5, 6), p(3, 7), p(1, 5)}, got); diff != "" {
		t.Error(diff)
	}
}

// priceList is a cloud that only lists offerings.
type priceList struct {
	driver.Cloud
	all []drover.Offering
	err error
}

func (l priceList) Offerings(context.Context) ([]drover.Offering, error) { return l.all, l.err }

func TestListedPrice(t *testing.T) {
	listed := priceList{all: []drover.Offering{{Zone: "z", Type: drover.InstanceType{ProviderType: "t"}, Market: drover.Spot, Price: 5}}}
	got, err := driver.ListedPrice(t.Context(), listed, driver.Candidate{ProviderType: "t", Zone: "z", Market: drover.Spot}, 7)
	if diff := cmp.Diff([]driver.PricePoint{{From: 7, Price: 5}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := driver.ListedPrice(t.Context(), listed, driver.Candidate{ProviderType: "t", Zone: "y", Market: drover.Spot}, 7); drover.KindOf(err) != drover.KindNotFound {
		t.Error(err)
	}
	listed.err = drover.Errorf(drover.KindTransient, "not now")
	if _, err := driver.ListedPrice(t.Context(), listed, driver.Candidate{}, 7); drover.KindOf(err) != drover.KindTransient {
		t.Error(err)
	}
}
