package control

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/wire"
)

// covers D5 D21
func TestOrders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	sick := filepath.Join(t.TempDir(), "sick")
	f.cfg.Orders = wire.Orders{Orphan: time.Hour, Health: "[ ! -e " + sick + " ]", Interval: 20 * time.Millisecond, Deadline: 5 * time.Second}
	c, stop := f.begin()
	defer stop()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	home := filepath.Join(filepath.Dir(filepath.Dir(f.logs)), "here", "test")
	obeyed := func() (o wire.Orders) {
		found, _ := filepath.Glob(filepath.Join(home, "*", "home", ".drover", "orders"))
		if len(found) == 1 {
			if text, err := os.ReadFile(found[0]); err == nil {
				_ = json.Unmarshal(text, &o)
			}
		}
		return o
	}
	want := f.cfg.Orders
	want.Notices = "file"
	f.until(c, "its runner has its orders", func(*engine.Engine) bool { return obeyed() == want })

	s := f.cfg.Setup
	s.Orders.Orphan, want.Orphan = 2*time.Hour, 2*time.Hour
	must(0, c.Reconfigure(t.Context(), s))(t)
	f.until(c, "its runner has the next orders", func(*engine.Engine) bool { return obeyed() == want })

	must(c.Instruct(t.Context(), "1", drover.VerbHold, ""))(t)
	f.until(c, "a held instance never powers itself off", func(*engine.Engine) bool { return obeyed().Orphan == 0 })
	must(c.Instruct(t.Context(), "1", drover.VerbRelease, ""))(t)
	f.until(c, "a released instance may power itself off", func(*engine.Engine) bool { return obeyed() == want })

	// What the instance reports about its health reaches the engine.
	must(0, os.WriteFile(sick, nil, 0o600))(t)
	f.until(c, "it is unhealthy", func(e *engine.Engine) bool { return e.Instances()[0].Unhealthy != nil })
	must(0, os.Remove(sick))(t)
	f.until(c, "it is healthy", func(e *engine.Engine) bool { return e.Instances()[0].Unhealthy == nil })
	found := must(filepath.Glob(filepath.Join(home, "*")))(t)
	notice := must(json.Marshal(drover.Notice{Cause: "spot", Deadline: drover.TimeOf(time.Now().Add(time.Hour))}))(t)
	must(0, os.WriteFile(filepath.Join(found[0], "notices"), notice, 0o600))(t)
	f.until(c, "it is being interrupted", func(e *engine.Engine) bool { return e.Instances()[0].Reclaimed != nil })
}
