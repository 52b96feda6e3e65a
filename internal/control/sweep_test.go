package control

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"drover/driver"
)

// littered is a cloud with a leftover.
type littered struct {
	driver.Cloud
	removed []string
}

func (l *littered) Leftovers(_ context.Context, fleet string) ([]driver.Leftover, error) {
	tags := map[string]string{driver.TagFleet: fleet}
	return []driver.Leftover{{Kind: "volume", ID: "v", Tags: tags, Created: 1}, {Kind: "key pair", ID: "k", Tags: tags, Created: 1, Shared: true}}, nil
}

func (l *littered) Remove(_ context.Context, s driver.Leftover) error {
	l.removed = append(l.removed, s.ID)
	return nil
}

// covers C7
func TestSweep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		life driver.FleetState
		want []string
	}{
		{"removes unowned leftovers of a live fleet, but not shared ones", driver.Active, []string{"v"}},
		{"removes shared leftovers with the fleet", driver.Ended, []string{"v", "k"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			cloud := &littered{Cloud: f.cfg.Clouds[0].Driver}
			f.cfg.Clouds[0].Driver = cloud
			must(New(t.Context(), f.cfg))(t).Sweep(t.Context(), tt.life)
			if !slices.Equal(cloud.removed, tt.want) {
				t.Errorf("removed %q, want %q", cloud.removed, tt.want)
			}
		})
	}
}

// covers C7
func TestARunningControllerRemovesLeftovers(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		swept []string
	}{{sweepDelay - 1, nil}, {sweepDelay, []string{"v"}}, {sweepDelay + sweepInterval, []string{"v", "v"}}} {
		synctest.Test(t, func(t *testing.T) {
			cloud := &littered{}
			c := &Controller{cfg: Config{Fleet: "test", Log: slog.New(slog.DiscardHandler)}}
			c.setup = c.newSetup(Setup{Clouds: []Cloud{{Name: "here", Driver: cloud}}}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go c.sweepHourly(ctx)
			time.Sleep(tt.after)
			synctest.Wait()
			cancel()
			synctest.Wait()
			if !slices.Equal(cloud.removed, tt.swept) {
				t.Errorf("removed %q within %v, want the volume each time but not the shared key", cloud.removed, tt.after)
			}
		})
	}
}
