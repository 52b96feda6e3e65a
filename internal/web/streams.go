package web

import (
	"sync"

	"drover"
)

// How many live pages may be open at once.
const (
	mostStreams = 1024
	mostPerUser = 256
)

// streams counts the live pages that are open.
type streams struct {
	mu   sync.Mutex
	open map[string]int // by user; guarded by mu
	all  int            // guarded by mu
}

// begin counts a live page until done is called.
func (s *streams) begin(user string) (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[user] >= mostPerUser:
		return nil, drover.Errorf(drover.KindRateLimit, "you have reached the limit of %d open live pages", mostPerUser)
	case s.all >= mostStreams:
		return nil, drover.Errorf(drover.KindRateLimit, "the limit of %d open live pages has been reached", mostStreams)
	}
	s.all++
	s.open[user]++
	return func() { s.end(user) }, nil
}

func (s *streams) end(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.open[user]--; s.open[user] == 0 {
		delete(s.open, user)
	}
}
