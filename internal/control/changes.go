package control

import "sync"

// changes tells those who wait for a job that something of it was committed.
type changes struct {
	mu      sync.Mutex
	waiting map[int64]*change // by job; guarded by mu
}

// change is waited for by so many.
type change struct {
	came    chan struct{} // closed when it comes
	waiters int
}

// of returns what is closed at the job's next change, and what must be called when it is no longer waited for.
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
