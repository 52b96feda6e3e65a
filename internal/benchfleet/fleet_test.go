package benchfleet

import (
	"context"
	"testing"
	"time"
)

func TestAFleet(t *testing.T) {
	tests := []struct {
		name      string
		w         Workload
		instances int // at most
	}{
		{"two hundred jobs that do nothing run once each, on as many instances as the quota allows", Workload{Jobs: 200, Quota: 10}, 10},
		{"two hundred mixed jobs take few instances more than the quota", Workload{Jobs: 200, Quota: 10, Boot: 50 * time.Millisecond, Work: 10 * time.Millisecond}, 20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r, err := Run(ctx, t.TempDir(), test.w)
			if err != nil {
				t.Fatal(err)
			}
			if r.Instances == 0 || r.Instances > test.instances || r.Refused == 0 {
				t.Errorf("%d instances were made and %d refused; wanted at most %d, and some refused", r.Instances, r.Refused, test.instances)
			}
			if r.Paid < r.Useful || r.Useful < test.w.Work*200 || r.CPU == 0 || r.Elapsed == 0 || r.Peak == 0 {
				t.Errorf("measured %+v", r)
			}
		})
	}
}
