package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
)

// sloppy is a cloud that lists more than was requested, and twice.
type sloppy struct {
	driver.Cloud
	instances []driver.Instance
	err       error
	touched   []string
	asked     []map[string]string // the tags of each list
}

func (s *sloppy) Capabilities() driver.Capabilities {
	return driver.Capabilities{Describe: true, StopStart: true, GrowDisk: true}
}

func (s *sloppy) Create(_ context.Context, r driver.CreateRequest) (driver.Instance, driver.Candidate, error) {
	return driver.Instance{ID: "new", Tags: r.Tags}, driver.Candidate{}, nil
}

func (s *sloppy) List(_ context.Context, tags map[string]string) ([]driver.Instance, error) {
	s.asked = append(s.asked, tags)
	return append(s.instances, s.instances...), s.err
}

func (s *sloppy) Destroy(_ context.Context, id string) error {
	s.touched = append(s.touched, "destroy "+id)
	return nil
}

func (s *sloppy) SetTags(_ context.Context, id string, _ map[string]string) error {
	s.touched = append(s.touched, "tag "+id)
	return nil
}

func (s *sloppy) Describe(_ context.Context, id string) (driver.Instance, error) {
	for _, in := range s.instances {
		if in.ID == id {
			return in, s.err
		}
	}
	return driver.Instance{Ended: 7}, drover.Errorf(drover.KindNotFound, "there is no instance %s", id)
}

func (s *sloppy) Start(_ context.Context, id string) error {
	s.touched = append(s.touched, "start "+id)
	return nil
}

func (s *sloppy) Stop(_ context.Context, id string) error {
	s.touched = append(s.touched, "stop "+id)
	return nil
}

func of(id, fleet, pool string) driver.Instance {
	return driver.Instance{ID: id, Tags: map[string]string{driver.TagFleet: fleet, driver.TagPool: pool}}
}

// covers C1
func TestForFleet(t *testing.T) {
	open := func() (*sloppy, *middleware.FleetCloud) {
		s := &sloppy{instances: []driver.Instance{of("a", "ours", "p"), of("b", "theirs", "p"), of("c", "ours", "q"), {ID: "d"}}}
		return s, middleware.ForFleet(s, "ours")
	}
	list := func(t *testing.T, o *middleware.FleetCloud, tags map[string]string) (ids []string) {
		t.Helper()
		all, err := o.List(t.Context(), tags)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range all {
			ids = append(ids, in.ID)
		}
		return ids
	}
	touch := func(t *testing.T, o *middleware.FleetCloud, id string) error {
		return errors.Join(o.Destroy(t.Context(), id), o.SetTags(t.Context(), id, nil))
	}

	t.Run("a list contains only the fleet's instances, each once", func(t *testing.T) {
		_, o := open()
		if diff := cmp.Diff([]string{"a", "c"}, list(t, o, nil)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"c"}, list(t, o, map[string]string{driver.TagPool: "q"})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the first list logs how many instances others own, but not which", func(t *testing.T) {
		s, o := open()
		var log bytes.Buffer
		o.LogOthers(slog.New(slog.NewTextHandler(&log, nil)))
		if diff := cmp.Diff([]string{"a", "c"}, list(t, o, nil)); diff != "" {
			t.Error(diff)
		}
		list(t, o, nil)
		_, logged, _ := strings.Cut(log.String(), "msg=")
		if want := "\"this account contains instances that do not belong to the fleet; they are left alone\" of_other_fleets=1 of_no_fleet=1\n"; logged != want {
			t.Errorf("logged: %s", logged)
		}
		if diff := cmp.Diff([]map[string]string{nil, {driver.TagFleet: "ours"}}, s.asked); diff != "" {
			t.Errorf("requested tags: %s", diff)
		}
	})
	t.Run("if that list fails, one more tries after the next success", func(t *testing.T) {
		down, tooLarge := errors.New("the cloud is down"), errors.New("there is too much")
		for name, tt := range map[string]struct {
			fails  []error // of each list
			whole  []int   // the lists of the whole account
			logged string
		}{
			"down":      {[]error{down, down, nil, nil, nil}, []int{0, 3}, "of_other_fleets=1 of_no_fleet=1"},
			"too large": {[]error{tooLarge, nil, tooLarge, nil, nil}, []int{0, 2}, "are unknown, since the account cannot be listed in full"},
		} {
			s, o := open()
			var log bytes.Buffer
			o.LogOthers(slog.New(slog.NewTextHandler(&log, nil)))
			var whole []int
			for i, err := range tt.fails {
				s.err = err
				o.List(t.Context(), nil)
				if s.asked[i] == nil {
					whole = append(whole, i)
				}
			}
			if !slices.Equal(whole, tt.whole) || !strings.Contains(log.String(), tt.logged) || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("%s: lists of the whole account: %v; logged: %s", name, whole, log.String())
			}
		}
	})
	t.Run("if others own nothing, nothing is logged", func(t *testing.T) {
		s, o := open()
		s.instances = s.instances[:1]
		var log bytes.Buffer
		o.LogOthers(slog.New(slog.NewTextHandler(&log, nil)))
		if list(t, o, nil); log.Len() > 0 {
			t.Error(log.String())
		}
	})
	t.Run("a failed list returns no instances and permits no changes", func(t *testing.T) {
		s, o := open()
		s.err = errors.New("half an answer")
		if all, err := o.List(t.Context(), nil); err == nil || all != nil {
			t.Errorf("got %v, %v", all, err)
		}
		if err := touch(t, o, "a"); err == nil {
			t.Error("an instance from a failed list was touched")
		}
	})
	t.Run("instances never seen in the fleet are not touched", func(t *testing.T) {
		s, o := open()
		list(t, o, nil)
		for _, id := range []string{"b", "d", "e"} {
			if err := o.Destroy(t.Context(), id); drover.KindOf(err) != drover.KindForbidden {
				t.Errorf("destroy %s: %v", id, err)
			}
			if err := o.SetTags(t.Context(), id, nil); drover.KindOf(err) != drover.KindForbidden {
				t.Errorf("tag %s: %v", id, err)
			}
			if err := o.Stop(t.Context(), id); drover.KindOf(err) != drover.KindForbidden {
				t.Errorf("stop %s: %v", id, err)
			}
			if err := o.Start(t.Context(), id); drover.KindOf(err) != drover.KindForbidden {
				t.Errorf("start %s: %v", id, err)
			}
		}
		if len(s.touched) > 0 {
			t.Errorf("touched: %v", s.touched)
		}
	})
	t.Run("listed, created and adopted instances are touched", func(t *testing.T) {
		s, o := open()
		list(t, o, nil)
		if _, _, err := o.Create(t.Context(), driver.CreateRequest{Tags: map[string]string{driver.TagFleet: "ours"}}); err != nil {
			t.Fatal(err)
		}
		o.Adopt("b")
		if err := errors.Join(touch(t, o, "a"), touch(t, o, "new"), touch(t, o, "b")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"destroy a", "tag a", "destroy new", "tag new", "destroy b", "tag b"}, s.touched); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a described instance with the fleet's tag may be touched, even if never listed", func(t *testing.T) {
		s, o := open()
		if in, err := o.Describe(t.Context(), "a"); err != nil || in.ID != "a" {
			t.Errorf("got %v, %v", in, err)
		}
		if err := touch(t, o, "a"); err != nil {
			t.Error(err)
		}
		for _, id := range []string{"b", "d"} {
			if in, err := o.Describe(t.Context(), id); drover.KindOf(err) != drover.KindForbidden || in.ID != "" {
				t.Errorf("%s: got %v, %v", id, in, err)
			}
		}
		if in, err := o.Describe(t.Context(), "e"); drover.KindOf(err) != drover.KindNotFound || in.Ended != 7 {
			t.Errorf("got %v, %v", in, err)
		}
		for _, id := range []string{"b", "d", "e"} {
			if err := o.Destroy(t.Context(), id); drover.KindOf(err) != drover.KindForbidden {
				t.Errorf("destroy %s: %v", id, err)
			}
		}
		o.Adopt("d")
		if in, err := o.Describe(t.Context(), "d"); err != nil || in.ID != "d" {
			t.Errorf("adopted without a tag: got %v, %v", in, err)
		}
		s.err = errors.New("half an answer")
		if in, err := o.Describe(t.Context(), "a"); !errors.Is(err, s.err) || in.ID != "" {
			t.Errorf("got %v, %v", in, err)
		}
	})
	t.Run("an instance that is gone can be destroyed again, and is eventually forgotten", func(t *testing.T) {
		s, o := open()
		list(t, o, nil)
		s.instances = nil
		list(t, o, nil)
		if err := touch(t, o, "a"); err != nil {
			t.Error(err)
		}
		for range 1000 {
			list(t, o, nil)
		}
		if err := touch(t, o, "a"); err == nil {
			t.Error("the instance is never forgotten")
		}
	})
	t.Run("an instance without the fleet's tag is not created", func(t *testing.T) {
		_, o := open()
		if _, _, err := o.Create(t.Context(), driver.CreateRequest{Name: "x"}); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("got %v", err)
		}
	})
	t.Run("optional interfaces are found in the cloud within", func(t *testing.T) {
		_, o := open()
		if s, ok := driver.As[driver.Starter](o); !ok || s != driver.Starter(o) {
			t.Error("found no Starter, or one that bypasses the filter")
		}
		if _, ok := driver.As[driver.PriceHistorian](o); ok {
			t.Error("found a PriceHistorian that the cloud lacks")
		}
		if _, ok := driver.As[driver.DiskGrower](o); ok {
			t.Error("found a DiskGrower that the cloud lacks")
		}
	})
}
