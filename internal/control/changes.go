package control

import "sync"

// changes wakes callers who wait for a job when a change to it was committed.
type changes struct {
	mu      sync.Mutex
	waiting map[int64]*change // by job; guarded by mu
}

// change is one job's next change, and the number of callers who wait for it.
type change struct {
	came    chan struct{} // closed by the change
	waiters int
}

// of returns a channel that is closed at the job's next change, and a function to call when it is no longer needed.
func (k *changes) of(job int64) (came <-chan struct{}, done func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.waiting[job]
	if c == nil {
		c = &change{came: make(chan struct{})}
		k.waiting[job] = c
	}
	c.waiters++
	return c.came, func() { k.leave(job, c) }
}

func (k *changes) leave(job int64, c *change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.waiters--; c.waiters == 0 && k.waiting[job] == c {
		delete(k.waiting, job)
	}
}

func (k *changes) tell(job int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.waiting[job]; c != nil {
		close(c.came)
		delete(k.waiting, job)
	}
}
