package gc

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/engine"
	"drover/internal/store"
)

// aCollector returns a silent collector whose controller gives this answer.
func aCollector(instances []drover.Instance, err error) *Collector {
	return New(Options{Say: io.Discard, Ask: func(context.Context, string) ([]drover.Instance, error) { return instances, err }})
}

func TestWhichInstancesAreWanted(t *testing.T) {
	ours := []drover.Instance{{Name: "lab-x", Cloud: "here", ProviderID: "i-1"}, {Name: "lab-z", Cloud: "here"}}
	away := drover.Errorf(drover.KindUnreachable, "nobody answers")

	t.Run("asks the controller, by the cloud's id, or by name while the id is unknown", func(t *testing.T) {
		known, err := aCollector(ours, nil).wanted(t.Context(), daemon.Folder{Fleet: "lab"})
		if err != nil {
			t.Fatal(err)
		}
		for s, want := range map[*Stray]bool{
			{Name: "lab-x", Cloud: "here", ProviderID: "i-1"}:  true,
			{Name: "", Cloud: "here", ProviderID: "i-1"}:       true,
			{Name: "lab-x", Cloud: "there", ProviderID: "i-1"}: false,
			{Name: "lab-x", Cloud: "here", ProviderID: "i-2"}:  false, // the cloud created it twice
			{Name: "lab-y", Cloud: "here", ProviderID: "i-3"}:  false,
			{Name: "lab-z", Cloud: "here", ProviderID: "i-4"}:  true,
			{Name: "lab-z", Cloud: "there", ProviderID: "i-5"}: false,
		} {
			if known(*s) != want {
				t.Errorf("%+v: %v", s, !want)
			}
		}
	})
	t.Run("reads the records while the controller is away", func(t *testing.T) {
		folder := aDaemonFolder(t)
		records, err := store.Open(t.Context(), folder.DB())
		if err != nil {
			t.Fatal(err)
		}
		if err := records.Close(); err != nil {
			t.Fatal(err)
		}
		known, err := aCollector(nil, away).wanted(t.Context(), folder)
		if err != nil || known(Stray{Name: "lab-x"}) {
			t.Errorf("%v", err)
		}
	})
	t.Run("leaves records of another version to that version", func(t *testing.T) {
		folder := aDaemonFolder(t)
		records, err := store.Open(t.Context(), folder.DB())
		if err != nil {
			t.Fatal(err)
		}
		_, err = records.Begin(t.Context(), "lab")
		if err := errors.Join(err, records.Close()); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", folder.DB())
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec(`UPDATE fleet SET version = 99`)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := aCollector(nil, away).wanted(t.Context(), folder); drover.KindOf(err) != drover.KindConflict || !strings.Contains(drover.AsError(err, "").Hint, "version") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("fails without either, and creates no records", func(t *testing.T) {
		folder := aDaemonFolder(t)
		if _, err := aCollector(nil, away).wanted(t.Context(), folder); drover.KindOf(err) != drover.KindUnreachable {
			t.Errorf("the error is %v", err)
		}
		if _, err := readRecords(t.Context(), folder); err == nil {
			t.Error("records were created")
		}
	})
	t.Run("reports that the caller may not ask", func(t *testing.T) {
		refused := drover.Errorf(drover.KindForbidden, "not for you")
		if _, err := aCollector(nil, refused).wanted(t.Context(), aDaemonFolder(t)); !errors.Is(err, refused) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestSharedLeftoversGoOnlyWithTheirFleet(t *testing.T) {
	for _, tt := range []struct {
		name        string
		ended, seen bool
		want        driver.FleetState
	}{
		{"while something of the fleet is left they stay", false, true, driver.Active},
		{"once nothing is left and nobody can look after it, all of them go", true, true, driver.Ended},
		{"where nothing shows whether somebody does, only old ones go", true, false, driver.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&Collector{Blind: !tt.seen}).life(tt.ended); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCleaningUpReportsKilledRuns(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var said bytes.Buffer
	g := New(Options{Say: &said, File: "drover.yaml"})
	g.Named = "lab"
	if err := g.TellOfRuns(); err != nil || said.Len() > 0 {
		t.Errorf("without any run, it prints %q, %v", said.String(), err)
	}
	killed, err := daemon.NewRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.Save(daemon.RunPlan{}); err != nil {
		t.Fatal(err)
	}
	if err := g.TellOfRuns(); err != nil || said.Len() > 0 {
		t.Errorf("for a live one it prints %q, %v", said.String(), err)
	}
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	want := "another run is unfinished. To see its instances: drover gc --fleet " + killed.ID + "\n"
	if err := g.TellOfRuns(); err != nil || said.String() != want {
		t.Errorf("it prints %q, %v, not %q", said.String(), err, want)
	}
}

// stubborn is a cloud that refuses to destroy one of its instances.
type stubborn struct {
	driver.Cloud
	fleet  string            // whose they are; empty: lab's
	there  map[string]string // names by id
	refuse string
}

func (c *stubborn) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (c *stubborn) Close() error { return nil }

func (c *stubborn) Destroy(_ context.Context, id string) error {
	if id == c.refuse {
		return drover.Errorf(drover.KindForbidden, "%s is protected", id)
	}
	delete(c.there, id)
	return nil
}

func (c *stubborn) List(context.Context, map[string]string) (list []driver.Instance, err error) {
	for id, name := range c.there {
		list = append(list, driver.Instance{ID: id, Tags: map[string]string{driver.TagFleet: cmp.Or(c.fleet, "lab"), driver.TagName: name}})
	}
	return list, nil
}

func TestAnInstanceThatCannotBeDestroyedDoesNotProtectTheOthers(t *testing.T) {
	cloud := &stubborn{there: map[string]string{"i-1": "lab-x", "i-2": "lab-x", "i-3": "lab-y"}, refuse: "i-1"}
	found := []*Stray{
		{Name: "lab-x", Cloud: "here", ProviderID: "i-1"}, {Name: "lab-x", Cloud: "here", ProviderID: "i-2"}, {Name: "lab-y", Cloud: "here", ProviderID: "i-3"},
	}
	err := DestroyStrays(t.Context(), cloud, "lab", slices.Clone(found))
	if drover.KindOf(err) != drover.KindForbidden || !strings.Contains(err.Error(), "destroying instance lab-x (here i-1): i-1 is protected") {
		t.Errorf("the error is %v", err)
	}
	if found[0].Destroyed || !found[1].Destroyed || !found[2].Destroyed || len(cloud.there) != 1 {
		t.Errorf("%v are left, and it found %+v", cloud.there, found)
	}
}

// aDaemonFolder returns an existing folder of a fleet called lab.
func aDaemonFolder(t *testing.T) daemon.Folder {
	t.Helper()
	c := config.Default("lab")
	c.State = filepath.Join(t.TempDir(), "drover.db")
	f, err := daemon.NewFolder(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Make(); err != nil {
		t.Fatal(err)
	}
	return f
}

// collector destroys a fleet's instances in one cloud.
func collector(fleet string, cloud driver.Cloud, without bool) *Collector {
	return New(Options{
		Fleet: fleet, Destroy: true, WithoutState: without, Say: io.Discard,
		Program: daemon.Program{Drivers: map[string]daemon.Kind{"fake": {Open: func(context.Context, driver.Options) (driver.Cloud, error) { return cloud, nil }}}},
		Load: func(string, string) (*config.Config, error) {
			c := config.Default("other")
			c.Clouds = []config.Cloud{{Name: "here", Common: config.Common{Driver: "fake"}}}
			return c, nil
		},
	})
}

func TestARunWhoseRecordsCannotBeLockedIsLeftAlone(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	run, err := daemon.NewRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	lock := run.File("drover.db.lock")
	if err := errors.Join(run.Save(daemon.RunPlan{}), run.Close(), os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	cloud := &stubborn{fleet: run.ID, there: map[string]string{"i-1": "x"}}
	if err := collector(run.ID, cloud, true).run(t.Context(), run.ID); err == nil || len(cloud.there) != 1 {
		t.Errorf("error %v, %v are left", err, cloud.there)
	}
}

func TestWhatCannotBeReadDoesNotHideTheRest(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var runs []*daemon.RunFolder
	for range 2 {
		run, err := daemon.NewRunFolder()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(run.Save(daemon.RunPlan{}), run.Close()); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b *daemon.RunFolder) int { return cmp.Compare(a.ID, b.ID) })
	if err := os.WriteFile(runs[0].File("run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cloud := &stubborn{fleet: runs[1].ID, there: map[string]string{"i-1": "x"}}
	g := collector("", cloud, false)
	g.Destroy = false
	g.Program.Drivers["down"] = daemon.Kind{Open: func(context.Context, driver.Options) (driver.Cloud, error) { return unlistable{cloud}, nil }}
	load := g.Load
	g.Load = func(file, only string) (*config.Config, error) {
		c, err := load(file, only)
		c.Clouds = slices.Insert(c.Clouds, 0, config.Cloud{Name: "there", Common: config.Common{Driver: "down"}})
		return c, err
	}
	err := g.Collect(t.Context())
	if len(g.Found) != 1 || err == nil || !strings.Contains(err.Error(), "reading "+runs[0].File("run.json")) || !strings.Contains(err.Error(), "no permission") {
		t.Errorf("%d instances were found, the error is %v", len(g.Found), err)
	}
}

// unlistable is a cloud that refuses to list its instances.
type unlistable struct{ driver.Cloud }

func (unlistable) List(context.Context, map[string]string) ([]driver.Instance, error) {
	return nil, drover.Errorf(drover.KindForbidden, "no permission")
}

func TestInstancesOfAnUnknownFleetAreDestroyedOnlyWithoutState(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	cloud := &stubborn{there: map[string]string{"i-1": "lab-x"}}
	collect := func(without bool) (*Collector, error) {
		g := collector("lab", cloud, without)
		return g, g.unknown(t.Context(), "lab")
	}
	if g, err := collect(false); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "it is unknown whether its instances are still needed") || len(cloud.there) != 1 {
		t.Errorf("with an instance: %v, found %d, %v are left", err, len(g.Found), cloud.there)
	}
	clear(cloud.there)
	if _, err := collect(false); err != nil {
		t.Errorf("without instances: %v", err)
	}
}

// elsewhere is a cloud in a region without instances.
type elsewhere struct{ driver.Cloud }

func (elsewhere) List(context.Context, map[string]string) ([]driver.Instance, error) { return nil, nil }

func TestTheInstancesOfARunStayInTheirCloud(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	run, err := daemon.NewRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	cloud := &stubborn{fleet: run.ID, there: map[string]string{"i-1": "x"}}
	open := func(in driver.Cloud) daemon.Kind {
		return daemon.Kind{Open: func(context.Context, driver.Options) (driver.Cloud, error) { return in, nil }}
	}
	program := daemon.Program{Drivers: map[string]daemon.Kind{"north": open(cloud), "south": open(elsewhere{cloud})}}
	configured := func(name, region string) *config.Config {
		c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {"+name+": {driver: "+region+"}}\n"), "")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	resume := func(c *config.Config) error {
		f, err := daemon.OpenFleet(t.Context(), daemon.FleetOptions{
			Program: program, Fleet: run.ID, Config: c, DB: run.File("drover.db"), File: run.File, Results: t.TempDir(), Left: daemon.NoneLeft, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		defer f.Close()
		in := engine.Instance{ID: 1, Name: "x", Cloud: "here", ProviderID: "i-1", State: drover.InstanceRunning}
		return f.Store.Commit(t.Context(), []engine.Write{{Instance: &in}})
	}
	if err := errors.Join(run.Save(daemon.RunPlan{}), resume(configured("here", "north"))); err != nil {
		t.Fatal(err)
	}
	const missing = "the cloud lists instance i-1 with its earlier configuration, but not with this one"
	if err := resume(configured("here", "south")); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("the run continued in another region: %v", err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	for _, destroy := range []bool{false, true} {
		for name, want := range map[string]string{"here": missing, "there": "instance x is in cloud here"} {
			c := configured(name, "south")
			g := New(Options{Fleet: run.ID, Destroy: destroy, Say: io.Discard, Program: program, Load: func(string, string) (*config.Config, error) { return c, nil }})
			if err := g.Collect(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the run has no instances, by cloud %s (destroy: %v): %v", name, destroy, err)
			}
		}
	}
	if len(cloud.there) == 0 || !slices.Contains(daemon.UnfinishedRuns(filepath.Dir(run.Path)), run.ID) {
		t.Errorf("%s was abandoned, with %v", run.ID, cloud.there)
	}
}

// late is a cloud without listed instances, whose lists may lag five minutes.
type late struct{ elsewhere }

func (late) Capabilities() driver.Capabilities { return driver.Capabilities{ListLag: 5 * time.Minute} }

func TestTheRecordsOfARunAreKeptUntilItsCloudListsAllInstances(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	run, err := daemon.NewRunFolder()
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), run.File("drover.db"))
	if err != nil {
		t.Fatal(err)
	}
	in := engine.Instance{ID: 1, Name: "x", Cloud: "here", ProviderID: "i-1", State: drover.InstanceRunning}
	if err := errors.Join(s.Commit(t.Context(), []engine.Write{{Instance: &in}}), s.Close(), run.Save(daemon.RunPlan{}), run.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("drover.yaml", []byte("version: 1\nclouds: {here: {driver: slow}}\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	open := func(context.Context, driver.Options) (driver.Cloud, error) { return late{elsewhere{&stubborn{}}}, nil }
	abandon := func(after time.Duration) error {
		killed := time.Now().Add(-after)
		if err := os.Chtimes(run.File("drover.db"), killed, killed); err != nil {
			t.Fatal(err)
		}
		return New(Options{
			Fleet: run.ID, Destroy: true, Say: io.Discard, Program: daemon.Program{Drivers: map[string]daemon.Kind{"slow": {Open: open}}},
			Load: func(string, string) (*config.Config, error) { return c, nil },
		}).Collect(t.Context())
	}
	if err := abandon(2 * time.Minute); err == nil || !strings.Contains(err.Error(), "does not list it yet") {
		t.Errorf("after two minutes, the run was abandoned with an instance: %v", err)
	}
	if err := abandon(6 * time.Minute); err != nil {
		t.Errorf("after six minutes: %v", err)
	}
}
