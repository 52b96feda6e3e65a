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

// startAge is how old the copy on disk may be for the first call of a controller that has just started. The next call,
// when nothing waits for it, fetches a newer one.
const startAge = 24 * time.Hour

// Options say what is cached, where and for how long.
type Options struct {
	Folder string
	Name   string        // of the file in the folder, without .json
	Key    string        // identifies the data: a copy with another key is not used
	Age    time.Duration // how old the copy may become
	Pause  time.Duration // how long not to fetch again after a failure; 0: the next call tries again
	Log    *slog.Logger
}

// Value is cached data. It is fetched from the cloud, and again once it is too old. If that fails, the old copy stays
// in use.
type Value[T any] struct {
	o     Options
	fetch func(context.Context) (T, error)

	turn chan struct{} // of capacity one; held while the fields below are used
	read bool          // the file has been read
	now  record[T]

	failed time.Time // when a fetch last failed
	err    error     // of the last fetch
}

// record is a file of the cache.
type record[T any] struct {
	Key     string    `json:"key"`
	Fetched time.Time `json:"fetched"`
	Data    T         `json:"data"`
}

// New returns a Value that is fetched by fetch.
func New[T any](o Options, fetch func(context.Context) (T, error)) *Value[T] {
	return &Value[T]{o: o, fetch: fetch, turn: make(chan struct{}, 1)}
}

func (k *Value[T]) file() string { return filepath.Join(k.o.Folder, k.o.Name+".json") }

// Get returns the data, fetched if necessary. Callers must not change it.
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

// renew fetches the data. If that fails, the old copy stays in use.
func (k *Value[T]) renew(ctx context.Context) {
	data, err := k.fetch(ctx)
	if k.err = err; err == nil {
		k.now = record[T]{k.o.Key, time.Now(), data}
		k.save()
		return
	}
	if ctx.Err() == nil { // otherwise it is not the cloud's failure
		k.failed = time.Now()
	}
	if !k.now.Fetched.IsZero() {
		k.o.Log.Warn("the earlier copy stays in use", logkey.File, filepath.Base(k.file()), logkey.Error, err)
	}
}

// load reads the file. It ignores one that is missing, is damaged or has another key.
func (k *Value[T]) load() {
	var r record[T]
	text, err := os.ReadFile(k.file())
	if err == nil && json.Unmarshal(text, &r) == nil && r.Key == k.o.Key {
		k.now = r
	}
}

// save replaces the file. It only logs a failure, since after a restart the data is fetched again.
func (k *Value[T]) save() {
	err := os.MkdirAll(k.o.Folder, 0o700)
	if err == nil {
		err = atomicfile.WriteJSON(k.file(), k.now)
	}
	if err != nil {
		k.o.Log.Warn("the fetched data cannot be stored", logkey.Error, err)
	}
}
