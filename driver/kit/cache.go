package kit

import (
	"context"
	"sync"
)

// Cache is what a driver asks its cloud, or does there, once for all, by names: what an image is like, the key that the fleet's instances
// share. Its zero value is ready for use.
type Cache[T any] struct {
	names Names // of what is being found

	mu  sync.Mutex
	all map[string]T // guarded by mu
}

// Get returns what is known by a name, or what find says, which is known from then on. Of many that want the same at once one finds it; what
// find fails at, the next one tries.
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

// Learn has something be known that was met by the way.
func (k *Cache[T]) Learn(name string, what T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]T{}
	}
	k.all[name] = what
}

// Forget has something be found again, since it may be there no more; without names, everything.
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
