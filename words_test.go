package drover

import (
	"encoding/json"
	"testing"
)

// FuzzWords checks that ids, money, vCPUs, sizes and times are either refused or survive being written and read again.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"", "17", "17.3", "17.3/1", "-1", "9223372036854775808", "1.5", "$0.25", "512Mi", "1e30", "0x10", " 1", "16Ei", "1_000", "\"2026-01-01T00:00:00Z\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := ParseJobID(s); err == nil {
			if again, err := ParseJobID(id.String()); err != nil || again != id || id.Number <= 0 {
				t.Errorf("job %q was read as %v, and that as %v (%v)", s, id, again, err)
			}
		}
		if id, err := ParseAttemptID(s); err == nil {
			if again, err := ParseAttemptID(id.String()); err != nil || again != id || id.Number <= 0 {
				t.Errorf("attempt %q was read as %v, and that as %v (%v)", s, id, again, err)
			}
		}
		if m, err := ParseMoney(s); err == nil && m < 0 {
			t.Errorf("%q was read as %v", s, m)
		}
		if c, err := ParseMilliCPU(s); err == nil && c < 0 {
			t.Errorf("%q was read as %v vCPUs", s, c)
		}
		if b, err := ParseBytes(s); err == nil {
			if again, err := ParseBytes(b.String()); err != nil || again != b || b < 0 {
				t.Errorf("size %q was read as %v, and that as %v (%v)", s, b, again, err)
			}
		}
		var at Time
		if json.Unmarshal([]byte(s), &at) == nil {
			text, err := json.Marshal(at)
			var again Time
			if err != nil || json.Unmarshal(text, &again) != nil || again != at {
				t.Errorf("time %s was read as %d, and its text %s as %d (%v)", s, at, text, again, err)
			}
		}
	})
}
