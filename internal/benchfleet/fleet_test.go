package benchfleet

import (
	"context"
	"testing"
	"time"
)

// covers F1 F8 F9
func TestAFleet(t *testing.T) {
	const most = 20 // instances, with a quota of 10: only those that no waiting job can use are replaced
	tests := []struct {
		name string
		w    Workload
	}{
		{"two hundred jobs that do nothing run once each", Workload{Jobs: 200, Quota: 10}},
		{"so do jobs that take their time, on instances that boot", Workload{Jobs: 200, Quota: 10, Boot: 50 * time.Millisecond, Work: 10 * time.Millisecond}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r, err := Run(ctx, t.TempDir(), test.w)
			if err != nil {
				t.Fatal(err)
			}
			if r.Instances < test.w.Quota || r.Instances > most || r.Refused == 0 {
				t.Errorf("%d instances were made and %d refused; wanted the quota to be used, and at most %d made", r.Instances, r.Refused, most)
			}
			if r.Paid < r.Useful || r.Useful < test.w.Work*200 || r.CPU == 0 || r.Elapsed == 0 || r.Peak == 0 {
				t.Errorf("measured %+v", r)
			}
		})
	}
}
