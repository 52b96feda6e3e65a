// Package diskcache caches what is fetched from a cloud from time to time, such as types and prices. The cache is on
// disk, so a restart does not wait for the cloud; an expired copy stays in use if nothing newer is available.
package diskcache

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"drover/internal/atomicfile"
	"drover/internal/logkey"
)

// startAge is how old what is on disk may be to serve a controller that has just started: it asks for newer at the next
// call, when nothing waits for it.
const startAge = 24 * time.Hour

// Options say what is kept, where and for how long.
type Options struct {
	Folder string
	Name   string        // of the file in it, without .json
	Key    string        // of what it is: what was kept of something else is not used
	Age    time.Duration // how old it may grow
	Pause  time.Duration // for how long it is not fetched again once that has failed; 0: the next call tries
	Log    *slog.Logger
}

// Value is something that is kept: fetched from the cloud, and anew when it has grown old. If that fails, what is kept
// goes on.
type Value[T any] struct {
	o     Options
	fetch func(context.Context) (T, error)

	turn chan struct{} // of capacity one; held while all below is used
	read bool          // what is on disk has been looked at
	now  record[T]

	failed time.Time // when it could not be fetched, last
	err    error     // and why
}

// record is a file of the cache.
type record[T any] struct {
	Key     string    `json:"key"`
	Fetched time.Time `json:"fetched"`
	Data    T         `json:"data"`
}

// New is a value that is fetched so.
func New[T any](o Options, fetch func(context.Context) (T, error)) *Value[T] {
	return &Value[T]{o: o, fetch: fetch, turn: make(chan struct{}, 1)}
}

func (k *Value[T]) file() string { return filepath.Join(k.o.Folder, k.o.Name+".json") }

// Get returns what is kept, fetched if need be. Callers must not change it.
func (k *Value[T]) Get(ctx context.Context) (T, error) {
	var none T
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	most := k.o.Age
	if !k.read {
		k.read = true
		k.load()
		most = max(most, startAge)
	}
	if age := time.Since(k.now.Fetched); age >= 0 && age < most {
		return k.now.Data, nil
	}
	if time.Since(k.failed) >= k.o.Pause {
		k.renew(ctx)
	}
	if k.now.Fetched.IsZero() {
		return none, k.err
	}
	return k.now.Data, nil
}

// renew fetches it. What cannot be had goes on as it was.
func (k *Value[T]) renew(ctx context.Context) {
	data, err := k.fetch(ctx)
	if k.err = err; err == nil {
		k.now = record[T]{k.o.Key, time.Now(), data}
		k.save()
		return
	}
	if ctx.Err() == nil { // else it is not the cloud's failure
		k.failed = time.Now()
	}
	if !k.now.Fetched.IsZero() {
		k.o.Log.Warn("the earlier copy stays in use", logkey.File, filepath.Base(k.file()), logkey.Error, err)
	}
}

// load reads the file. One that is missing, spoilt or of something else is as good as none.
func (k *Value[T]) load() {
	var r record[T]
	text, err := os.ReadFile(k.file())
	if err == nil && json.Unmarshal(text, &r) == nil && r.Key == k.o.Key {
		k.now = r
	}
}

// save puts a whole file in the place of the old one. What cannot be kept is fetched again after a restart, so it is
// only told.
func (k *Value[T]) save() {
	err := os.MkdirAll(k.o.Folder, 0o700)
	if err == nil {
		err = atomicfile.WriteJSON(k.file(), k.now)
	}
	if err != nil {
		k.o.Log.Warn("the fetched data cannot be stored", logkey.Error, err)
	}
}
