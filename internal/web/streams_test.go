package web

import (
	"testing"

	"drover"
)

func TestEachUserMayOpenALimitedNumberOfLivePages(t *testing.T) {
	s := streams{open: map[string]int{}}
	var done []func()
	for range mostPerUser {
		end, err := s.begin("ada")
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, end)
	}
	if _, err := s.begin("ada"); drover.KindOf(err) != drover.KindRateLimit {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.begin("bob"); err != nil {
		t.Errorf("another user: %v", err)
	}
	for _, end := range done {
		end()
	}
	if _, err := s.begin("ada"); err != nil || s.all != 2 || len(s.open) != 2 {
		t.Errorf("afterwards: %v, %d open, %v", err, s.all, s.open)
	}
}
