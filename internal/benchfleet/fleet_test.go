package benchfleet

import (
	"context"
	"testing"
	"time"
)

// covers F1 F8 F9
func TestAFleet(t *testing.T) {
	const most = 20 // instances, with a quota of 10: an instance is replaced only if no waiting job can use it
	tests := []struct {
		name string
		w    Workload
	}{
		{"two hundred empty jobs run once each", Workload{Jobs: 200, Quota: 10}},
		{"two hundred longer jobs on booting instances run once each", Workload{Jobs: 200, Quota: 10, Boot: 50 * time.Millisecond, Work: 10 * time.Millisecond}},
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
				t.Errorf("%d instances were created and %d refused, want the quota used and at most %d created", r.Instances, r.Refused, most)
			}
			if r.Paid < r.Useful || r.Useful < test.w.Work*200 || r.CPU == 0 || r.Elapsed == 0 || r.Peak == 0 {
				t.Errorf("measured %+v", r)
			}
		})
	}
}
