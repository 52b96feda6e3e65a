package control

import (
	"log/slog"
	"sync"

	"drover/internal/engine"
	"drover/internal/logkey"
)

// roster holds the log attributes of each instance. A gone instance is dropped with the following commit, since log
// lines about its end come after the write that ends it.
type roster struct {
	mu    sync.Mutex
	known map[int64][]slog.Attr // guarded by mu
	names map[string]int64      // guarded by mu
	gone  []int64               // guarded by mu
}

func newRoster(instances []engine.Instance) *roster {
	r := &roster{known: map[int64][]slog.Attr{}, names: map[string]int64{}}
	for _, in := range instances {
		r.add(in)
	}
	return r
}

// turn updates the roster with committed writes.
func (r *roster) turn(writes []engine.Write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.gone {
		r.forget(id)
	}
	r.gone = r.gone[:0]
	for _, w := range writes {
		switch {
		case w.Instance != nil:
			r.add(*w.Instance)
		case w.Gone != nil:
			r.gone = append(r.gone, w.Gone.ID)
		}
	}
}

func (r *roster) add(in engine.Instance) {
	r.names[in.Name] = in.ID
	r.known[in.ID] = []slog.Attr{
		slog.String(logkey.Instance, in.Name),
		slog.String(logkey.Cloud, in.Cloud),
		slog.String(logkey.ProviderID, in.ProviderID),
		slog.String(logkey.Type, in.Type.Name),
		slog.String(logkey.Zone, in.Zone),
		slog.String(logkey.Market, string(in.Market)),
	}
}

func (r *roster) forget(id int64) {
	if about := r.known[id]; about != nil {
		delete(r.names, about[0].Value.String())
	}
	delete(r.known, id)
}

// of returns the attributes of an instance; none if it is unknown.
func (r *roster) of(id int64) []slog.Attr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// called returns the attributes of the instance with this name.
func (r *roster) called(name string) []slog.Attr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if about, ok := r.known[r.names[name]]; ok {
		return about
	}
	return []slog.Attr{slog.String(logkey.Instance, name)}
}
