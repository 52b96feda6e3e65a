package kit

import (
	"context"
	"sync"
)

// Names holds the instance names that creates are working on, for clouds whose names are not unique: without it, two
// concurrent creates that look for a name would both find none. Its zero value is ready for use.
type Names struct {
	mu   sync.Mutex
	held map[string]chan struct{} // each is closed on release; guarded by mu
}

// Hold waits until nobody else holds the name, and holds it until release is called.
func (n *Names) Hold(ctx context.Context, name string) (release func(), err error) {
	for {
		busy, mine := n.try(name)
		if busy == nil {
			return func() { n.release(name, mine) }, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try holds the name unless it is held already; then busy is closed on release.
func (n *Names) try(name string) (busy <-chan struct{}, mine chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if held, is := n.held[name]; is {
		return held, nil
	}
	if n.held == nil {
		n.held = map[string]chan struct{}{}
	}
	mine = make(chan struct{})
	n.held[name] = mine
	return nil, mine
}

func (n *Names) release(name string, mine chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.held, name)
	close(mine)
}

// Value dereferences a pointer; it returns the zero value for nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Given returns a pointer to a value, or nil for the zero value, so that the cloud chooses.
func Given[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
