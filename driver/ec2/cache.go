package ec2

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"drover/internal/logkey"
)

// startAge is how old what is on disk may be to serve a controller that has just started: it asks for newer at the next call, when nothing waits
// for it.
const startAge = 24 * time.Hour

// kept is something that is fetched from the cloud, kept on disk, and fetched anew when it has grown old. If that fails, what is kept goes on.
type kept[T any] struct {
	file  string
	key   string        // of what it is: what was kept of something else is not used
	age   time.Duration // how old it may grow
	fetch func(context.Context) (T, error)
	log   *slog.Logger

	turn chan struct{} // of capacity one; held while all below is used
	read bool          // what is on disk has been looked at
	now  record[T]
}

// record is a file of the cache.
type record[T any] struct {
	Key     string    `json:"key"`
	Fetched time.Time `json:"fetched"`
	Data    T         `json:"data"`
}

func newKept[T any](c *cloud, name string, age time.Duration, fetch func(context.Context) (T, error)) *kept[T] {
	return &kept[T]{file: filepath.Join(c.o.Folder, name+".json"), key: c.identity(), age: age, fetch: fetch, log: c.o.Log, turn: make(chan struct{}, 1)}
}

// get returns what is kept, fetched if need be. Callers must not change it.
func (k *kept[T]) get(ctx context.Context) (T, error) {
	var none T
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return none, ctx.Err()
	}
	most := k.age
	if !k.read {
		k.read = true
		k.load()
		most = max(most, startAge)
	}
	if age := time.Since(k.now.Fetched); age >= 0 && age < most {
		return k.now.Data, nil
	}
	data, err := k.fetch(ctx)
	switch {
	case err == nil:
		k.now = record[T]{k.key, time.Now(), data}
		k.save()
	case k.now.Fetched.IsZero():
		return none, err
	default:
		k.log.Warn("what was fetched before goes on", logkey.File, filepath.Base(k.file), logkey.Error, err)
	}
	return k.now.Data, nil
}

// load reads the file. One that is missing, spoilt or of something else is as good as none.
func (k *kept[T]) load() {
	var r record[T]
	text, err := os.ReadFile(k.file)
	if err == nil && json.Unmarshal(text, &r) == nil && r.Key == k.key {
		k.now = r
	}
}

// save puts a whole file in the place of the old one. What cannot be kept is fetched again after a restart, so it is only told.
func (k *kept[T]) save() {
	if err := writeFile(k.file, k.now); err != nil {
		k.log.Warn("what was fetched cannot be kept", logkey.Error, err)
	}
}

func writeFile(file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".cache-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
