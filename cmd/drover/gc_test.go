package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/store"
)

// aCollector asks a controller, and is silent.
func aCollector(svc drover.Service, err error) *collector {
	return &collector{app: &app{err: io.Discard, connect: func(context.Context) (drover.Service, error) { return svc, err }}}
}

func TestWhoseInstancesAre(t *testing.T) {
	ours := []drover.Instance{{Name: "lab-x", Cloud: "here", ProviderID: "i-1"}}
	away := drover.Errorf(drover.KindUnreachable, "nobody answers")

	t.Run("the controller says, by name or by the cloud's id", func(t *testing.T) {
		known, err := aCollector(&fakeController{instances: ours}, nil).wanted(t.Context(), daemonFolder{fleet: "lab"})
		if err != nil {
			t.Fatal(err)
		}
		for s, want := range map[stray]bool{
			{Name: "lab-x"}:                     true,
			{Cloud: "here", ProviderID: "i-1"}:  true,
			{Cloud: "there", ProviderID: "i-1"}: false,
			{Name: "lab-y", ProviderID: "i-2"}:  false,
		} {
			if known(s) != want {
				t.Errorf("%+v: %v", s, !want)
			}
		}
	})
	t.Run("a controller of another fleet does not", func(t *testing.T) {
		if _, err := aCollector(&fakeController{}, nil).wanted(t.Context(), daemonFolder{fleet: "other"}); drover.KindOf(err) != drover.KindConflict {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the records do when the controller is away", func(t *testing.T) {
		folder := aDaemonFolder(t)
		records, err := store.Open(t.Context(), folder.db())
		if err != nil {
			t.Fatal(err)
		}
		if err := records.Close(); err != nil {
			t.Fatal(err)
		}
		known, err := aCollector(nil, away).wanted(t.Context(), folder)
		if err != nil || known(stray{Name: "lab-x"}) {
			t.Errorf("%v", err)
		}
	})
	t.Run("nobody does without either, and no records are made", func(t *testing.T) {
		folder := aDaemonFolder(t)
		if _, err := aCollector(nil, away).wanted(t.Context(), folder); drover.KindOf(err) != drover.KindUnreachable {
			t.Errorf("the error is %v", err)
		}
		if _, err := readRecords(t.Context(), folder); err == nil {
			t.Error("there are records")
		}
	})
	t.Run("one who may not ask is told so", func(t *testing.T) {
		refused := drover.Errorf(drover.KindForbidden, "not for you")
		if _, err := aCollector(nil, refused).wanted(t.Context(), aDaemonFolder(t)); !errors.Is(err, refused) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestWhatIsSharedGoesOnlyWithItsFleet(t *testing.T) {
	for _, tt := range []struct {
		name        string
		ended, seen bool
		want        driver.Life
	}{
		{"while something of the fleet is left it stays", false, true, driver.Living},
		{"once nothing is, and nobody can look after it, all of it goes", true, true, driver.Ended},
		{"where nothing says whether somebody does, only what is old", true, false, driver.Unheard},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&collector{blind: !tt.seen}).life(tt.ended); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCleaningUpTellsOfKilledRuns(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var said bytes.Buffer
	g := &collector{app: &app{err: &said, config: "drover.yaml"}}
	if err := g.tellOfRuns(); err != nil || said.Len() > 0 {
		t.Errorf("without any it says %q, %v", said.String(), err)
	}
	killed, err := newRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.save(runPlan{}); err != nil {
		t.Fatal(err)
	}
	if err := g.tellOfRuns(); err != nil || said.Len() > 0 {
		t.Errorf("of one that lives it says %q, %v", said.String(), err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	want := "1 run of drover run did not come to its end: drover gc --fleet " + killed.id + "\n"
	if err := g.tellOfRuns(); err != nil || said.String() != want {
		t.Errorf("it says %q, %v, not %q", said.String(), err, want)
	}
}
