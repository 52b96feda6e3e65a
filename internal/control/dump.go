package control

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// dump is everything that a controller knows, without secrets: the engine's state, and that of the parts around it.
type dump struct {
	Fleet   string           `json:"fleet"`
	Version string           `json:"version"`
	Links   []dumpedLink     `json:"links"`   // connected instances
	Clouds  []dumpedCloud    `json:"clouds"`  // what each of them last returned
	Effects []dumpedEffect   `json:"effects"` // in progress
	Hooks   dumpedHooks      `json:"hooks"`
	Store   map[string]int64 `json:"store"` // number of rows of each kind
	State   engine.State     `json:"state"`
}

type dumpedLink struct {
	Instance int64     `json:"instance"`
	Name     string    `json:"name"`
	Cloud    string    `json:"cloud"`
	HostKey  string    `json:"host_key"` // its fingerprint
	Heard    time.Time `json:"heard"`    // time of the last contact
	Probe    string    `json:"probe_failed,omitempty"`
	Runner   []string  `json:"runner_log,omitempty"` // the last lines of its runner's own log
}

type dumpedCloud struct {
	Name      string            `json:"name"`
	Listed    bool              `json:"listed"`    // there was a good list
	List      []driver.Instance `json:"last_list"` // what it had
	Created   []driver.Instance `json:"created"`   // since then, and not listed yet
	Missing   []driver.Instance `json:"missing"`   // the last to disappear from lists
	Offerings int               `json:"offerings"` // known to the engine
	LeftOut   int               `json:"left_out"`  // excluded by the configuration
}

type dumpedEffect struct {
	ID    int64     `json:"id"`
	Kind  string    `json:"kind"`
	Began time.Time `json:"began"`
}

type dumpedHooks struct {
	Scripts map[drover.Hook]string `json:"scripts"`
	Running int                    `json:"running"`
}

// Dump writes everything that the controller knows, without secrets.
func (c *Controller) Dump(ctx context.Context, w io.Writer) error {
	rows, err := c.cfg.Store.Rows(ctx)
	if err != nil {
		return err
	}
	now := c.current()
	d := dump{
		Fleet: c.cfg.Fleet, Version: c.cfg.Version, Links: c.dumpLinks(), Clouds: []dumpedCloud{}, Effects: c.flights.dump(),
		Hooks: dumpedHooks{now.Hooks, int(c.hooksRunning.Load())}, Store: rows,
	}
	for _, name := range slices.Sorted(maps.Keys(now.clouds)) {
		d.Clouds = append(d.Clouds, now.clouds[name].dump(name))
	}
	if err := c.Query(ctx, func(e *engine.Engine) { d.State = e.State() }); err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

func (c *Controller) dumpLinks() []dumpedLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []dumpedLink{}
	for _, id := range slices.Sorted(maps.Keys(c.links)) {
		l := c.links[id]
		list = append(list, dumpedLink{id, l.name, l.cloud, l.conn.Fingerprint(), l.conn.Heard(), l.conn.ProbeFailed(), c.said[id]})
	}
	return list
}

func (s *cloudView) dump(name string) dumpedCloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	return dumpedCloud{name, s.listed, byID(s.seen), byID(s.created), append([]driver.Instance{}, s.missing...), len(s.offered), len(s.leftOut)}
}

// byID returns instances in the order of their provider IDs.
func byID(instances map[string]driver.Instance) []driver.Instance {
	list := slices.AppendSeq([]driver.Instance{}, maps.Values(instances))
	slices.SortFunc(list, func(a, b driver.Instance) int { return strings.Compare(a.ID, b.ID) })
	return list
}

func (f *flights) dump() []dumpedEffect {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []dumpedEffect{}
	for id, flight := range f.flying {
		list = append(list, dumpedEffect{id, flight.effect.Kind(), flight.began})
	}
	slices.SortFunc(list, func(a, b dumpedEffect) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
