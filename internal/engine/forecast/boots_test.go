package forecast

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

func TestBootTimes(t *testing.T) {
	seen := func(h ...Stat) *BootTimes {
		f := New(Stats{Boots: h})
		f.SetClouds([]Cloud{{Name: "aws"}, {Name: "here"}})
		return f.BootTimes()
	}
	of := func(b *BootTimes, cloud, kind string) time.Duration {
		return b.Of(&drover.Offering{Cloud: cloud, Type: drover.InstanceType{Name: kind}})
	}
	usual := []Stat{{Key: "aws/a", Count: 9, Mean: 50 * time.Second}, {Key: "aws/b", Count: 1, Mean: 64 * time.Second}, {Key: "aws/c", Count: 9, Mean: 110 * time.Second}}

	t.Run("are none without observations", func(t *testing.T) {
		if b := seen(); b.Usual != 0 || b.Other != nil {
			t.Errorf("got %+v", b)
		}
	})
	t.Run("are the median of a cloud's types, despite noise", func(t *testing.T) {
		if diff := cmp.Diff(&BootTimes{Usual: time.Minute, Wait: 64 * time.Second}, seen(usual...)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("are a type's own if it boots far more slowly", func(t *testing.T) {
		b := seen(append(usual, Stat{Key: "aws/metal", Count: 2, Mean: 9 * time.Minute})...)
		if metal, other := of(b, "aws", "metal"), of(b, "aws", "new"); metal != 9*time.Minute || other > 2*time.Minute {
			t.Errorf("metal boots for %v, others for %v", metal, other)
		}
	})
	t.Run("do not change after a single boot", func(t *testing.T) {
		b := seen(append(usual, Stat{Key: "aws/metal", Count: 1, Mean: 9 * time.Minute})...)
		if metal := of(b, "aws", "metal"); metal > 2*time.Minute {
			t.Errorf("metal boots for %v", metal)
		}
	})
	t.Run("differ between clouds, and a cloud without observations counts as the quickest", func(t *testing.T) {
		b := seen(append(usual, Stat{Key: "here/h", Count: 1, Mean: 2 * time.Second})...)
		if aws, here, none := of(b, "aws", "b"), of(b, "here", "h"), of(b, "other", "o"); aws != time.Minute || here != bootGrain || none != here {
			t.Errorf("%v, %v and %v", aws, here, none)
		}
	})
}

func TestAWaitForAnInstanceIncludesTheCreateCall(t *testing.T) {
	f := New(Stats{})
	f.SetClouds([]Cloud{{Name: "aws"}})
	f.Accepted("aws", 3*time.Second, 100)
	if wait := f.BootTimes().Wait; wait != 0 {
		t.Errorf("before any boot, the wait is %v", wait)
	}
	f.Booted("aws", "a", 50*time.Second, 200)
	if b := f.BootTimes(); b.Wait != 53*time.Second || b.Usual != 45*time.Second {
		t.Errorf("got %+v", b)
	}
}
