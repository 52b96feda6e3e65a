package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	"drover"
)

// sums caches added-up costs. Adding up takes longer the more jobs there were in the requested period, so it is done in
// the background, and a page shows the last result. It is repeated only after a pause of at least sumShare times its
// duration.
type sums struct {
	mu    sync.Mutex
	known map[string]*sum // guarded by mu
}

// sum is the cached result of one filter.
type sum struct {
	costs drover.Costs
	err   error
	taken time.Time // zero: not added up yet
	took  time.Duration
	busy  chan struct{} // closed when it is no longer being added up
	used  time.Time
}

// How many sums are kept, and for how long.
const (
	mostSums   = 64
	freshSum   = 10 * time.Second
	firstSight = 50 * time.Millisecond // how long a page waits for a first result
	addingUp   = 5 * time.Minute       // at most
	sumShare   = 2 * share             // the next computation waits for this many times the duration of the last one
)

func newSums() *sums { return &sums{known: map[string]*sum{}} }

// month returns the cost of the fleet since the month began; nil if not known yet.
func (s *sums) month(r *request) *float64 {
	f := drover.CostFilter{By: drover.CostByCloud, Since: drover.TimeOf(startOfMonth(r.now)), Limit: 1}
	found, err := s.of(r, f, "month")
	if err != nil || found == nil {
		return nil
	}
	return &found.costs.Total.Cost
}

// of returns the costs of a filter; nil while they are added up for the first time. The name identifies the filter's
// period in later requests.
func (s *sums) of(r *request, f drover.CostFilter, name string) (*sum, error) {
	key := fmt.Sprintf("%s %s %s %s %d %d", r.who.User, r.who.Role, f.By, name, f.Step, f.Limit)
	s.mu.Lock()
	known := s.known[key]
	if known == nil {
		s.forget()
		known = &sum{}
		s.known[key] = known
	}
	known.used = r.now
	if known.busy == nil && r.now.Sub(known.taken) > max(freshSum, sumShare*known.took) {
		known.busy = make(chan struct{})
		go s.add(r, f, known)
	}
	busy, first := known.busy, known.taken.IsZero()
	s.mu.Unlock()
	if first && busy != nil {
		select {
		case <-busy:
		case <-time.After(firstSight):
			return nil, nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *known
	return &copied, known.err
}

// add adds up costs, and continues if the reader leaves, for other readers and later pages.
func (s *sums) add(r *request, f drover.CostFilter, known *sum) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), addingUp)
	defer cancel()
	began := time.Now()
	costs, err := r.svc.Costs(ctx, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || known.taken.IsZero() {
		known.costs, known.err = costs, err
	}
	known.taken, known.took = time.Now(), time.Since(began)
	close(known.busy)
	known.busy = nil
}

// forget drops the least recently used sums, to make room for one more.
func (s *sums) forget() {
	for len(s.known) >= mostSums {
		oldest := ""
		for key, k := range s.known {
			if oldest == "" || k.used.Before(s.known[oldest].used) {
				oldest = key
			}
		}
		delete(s.known, oldest)
	}
}
