package benchfleet

import (
	"sync"
	"time"

	"drover"
)

// tally counts the attempts that instances started.
type tally struct {
	work time.Duration // run time of each attempt

	mu       sync.Mutex
	starts   map[drover.JobID]int // guarded by mu
	overfull int                  // starts beyond an instance's room; guarded by mu
	useful   time.Duration        // vCPU time that attempts ran; guarded by mu
}

func newTally(work time.Duration) *tally { return &tally{work: work, starts: map[drover.JobID]int{}} }

func (t *tally) started(id drover.AttemptID, overfull bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starts[id.Job]++
	if overfull {
		t.overfull++
	}
}

func (t *tally) ended(cpu drover.MilliCPU, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.useful += took * time.Duration(cpu) / 1000
}

// sum returns how many jobs were started, how many starts repeated one, and how many exceeded an instance's room.
func (t *tally) sum() (jobs, again, overfull int, useful time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.starts {
		again += n - 1
	}
	return len(t.starts), again, t.overfull, t.useful
}
