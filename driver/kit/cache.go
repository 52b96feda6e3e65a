package kit

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Cache keeps, by name, what a driver reads from its cloud or creates there once: the properties of an image, the key
// that the fleet's instances share. Its zero value is ready for use.
type Cache[T any] struct {
	names Names // the names for which find is running

	mu  sync.Mutex
	all map[string]T // guarded by mu
}

// Get returns what is cached under a name; otherwise it calls find and caches the result. Of concurrent callers, one
// calls find. A failure is not cached.
func (k *Cache[T]) Get(ctx context.Context, name string, find func() (T, error)) (T, error) {
	var none T
	if what, known := k.get(name); known {
		return what, nil
	}
	release, err := k.names.Hold(ctx, name)
	if err != nil {
		return none, err
	}
	defer release()
	if what, known := k.get(name); known {
		return what, nil
	}
	what, err := find()
	if err != nil {
		return none, err
	}
	k.Learn(name, what)
	return what, nil
}

func (k *Cache[T]) get(name string) (what T, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what, known = k.all[name]
	return what, known
}

// Learn caches something found elsewhere.
func (k *Cache[T]) Learn(name string, what T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]T{}
	}
	k.all[name] = what
}

// Forget removes names from the cache, since they may no longer exist; without names, all.
func (k *Cache[T]) Forget(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(names) == 0 {
		clear(k.all)
	}
	for _, name := range names {
		delete(k.all, name)
	}
}

// rememberFor is longer than any cloud lists ended instances.
const rememberFor = 2 * time.Hour

// Remembered holds the ids of instances that Drover destroyed: an instance that ends and is not among them was taken
// back by its cloud. An id is forgotten two hours after it was last added or queried. The zero value is ready for use.
type Remembered struct {
	mu  sync.Mutex
	all map[string]time.Time // when each was last added or queried; guarded by mu
}

// Add remembers an id.
func (r *Remembered) Add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]time.Time{}
	}
	r.expire() // here too: a cloud that lists no ended instances queries none
	r.all[id] = time.Now()
}

// expire forgets ids. The caller holds mu.
func (r *Remembered) expire() {
	maps.DeleteFunc(r.all, func(_ string, at time.Time) bool { return time.Since(at) >= rememberFor })
}

// Has reports whether an id is remembered.
func (r *Remembered) Has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	_, has := r.all[id]
	if has {
		r.all[id] = time.Now()
	}
	return has
}
