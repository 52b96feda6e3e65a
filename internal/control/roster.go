package control

import (
	"log/slog"
	"sync"

	"drover/internal/engine"
	"drover/internal/logkey"
)

// roster knows what the log says of an instance whenever it names it. One that is gone is forgotten with the commit after, since what is said
// of its end comes later than the write that ends it.
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

// turn takes in what was written down.
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
	for _, a := range r.known[id] {
		if a.Key == logkey.Instance {
			delete(r.names, a.Value.String())
		}
	}
	delete(r.known, id)
}

// of is what is said of an instance: nothing, if it is not known.
func (r *roster) of(id int64) []slog.Attr {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id]
}

// called is what is said of the instance of this name.
func (r *roster) called(name string) []slog.Attr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if about, ok := r.known[r.names[name]]; ok {
		return about
	}
	return []slog.Attr{slog.String(logkey.Instance, name)}
}
