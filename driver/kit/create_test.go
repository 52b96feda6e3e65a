package kit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

func TestMostSevere(t *testing.T) {
	capacity := &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeZone, Market: drover.Spot, Message: "full"}
	quota := &drover.Error{Kind: drover.KindQuota, Scope: drover.ScopeAll, Market: drover.OnDemand, Message: "enough"}
	denied := &drover.Error{Kind: drover.KindAuthentication, Market: drover.Spot, Message: "no"}
	for _, tt := range []struct {
		name string
		all  []*drover.Error
		want drover.Error
	}{
		{"a single error stays unchanged", []*drover.Error{quota}, *quota},
		{"equal messages appear once", []*drover.Error{capacity, capacity}, *capacity},
		{"capacity outranks quota and is scoped to the type", []*drover.Error{quota, capacity},
			drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Message: "enough; full"}},
		{"an error of all candidates outranks others and has no scope", []*drover.Error{capacity, denied},
			drover.Error{Kind: drover.KindAuthentication, Market: drover.Spot, Message: "full; no"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, *kit.MostSevere(tt.all)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCreateRequests(t *testing.T) {
	t.Run("a bad name, no candidates or no image is refused", func(t *testing.T) {
		some := []driver.Candidate{{ProviderType: "small", Image: "debian", Market: drover.OnDemand}}
		for _, r := range []driver.CreateRequest{{Name: "", Candidates: some}, {Name: "-a", Candidates: some}, {Name: "a_b", Candidates: some},
			{Name: "abcd", Candidates: some}, {Name: "a"}} {
			if err := kit.CheckRequest(r, kit.Demands{Longest: 3, Image: "debian-12"}); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("%+v: %v", r, err)
			}
		}
		if err := kit.CheckRequest(driver.CreateRequest{Name: "a-1", Candidates: some}, kit.Demands{Longest: 3, Image: "debian-12"}); err != nil {
			t.Error(err)
		}
		bare := driver.CreateRequest{Name: "a", Candidates: append(some[:1:1], driver.Candidate{ProviderType: "small", Market: drover.Spot})}
		if err := kit.CheckRequest(bare, kit.Demands{Longest: 3}); err != nil {
			t.Error(err)
		}
		if err := kit.CheckRequest(bare, kit.Demands{Longest: 3, OnDemand: true}); drover.KindOf(err) != drover.KindUnsupported {
			t.Error(err)
		}
		e := drover.AsError(kit.CheckRequest(bare, kit.Demands{Longest: 3, Image: "debian-12"}), "")
		if e.Kind != drover.KindInvalid || !strings.Contains(e.Message, "small") || !strings.Contains(e.Hint, "debian-12") {
			t.Errorf("%+v", e)
		}
	})
	t.Run("an unavailable candidate leads to the next one", func(t *testing.T) {
		for kind, want := range map[drover.ErrorKind]bool{drover.KindCapacity: true, drover.KindQuota: true, drover.KindUnsupported: true,
			drover.KindTransient: false, drover.KindRateLimit: false, drover.KindInvalid: false} {
			if got := kit.TryNext(fmt.Errorf("create: %w", drover.Errorf(kind, "no"))); got != want {
				t.Errorf("%s: %v", kind, got)
			}
		}
		if kit.TryNext(nil) || kit.TryNext(errors.New("no")) {
			t.Error("no error, or one without a kind, leads to the next candidate")
		}
	})
	t.Run("the last value of a duplicate tag counts", func(t *testing.T) {
		got := kit.MergeTags(nil, map[string]string{"a": "1", "b": "1"}, map[string]string{"b": "2"})
		if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a failed create returns no instance, and an invalid one is not attempted", func(t *testing.T) {
		r := driver.CreateRequest{Name: "a", Candidates: []driver.Candidate{{Zone: "z", Market: drover.Spot}}}
		answer, failure, tried := driver.Instance{ID: "1", Zone: "z"}, error(nil), 0
		create := func() (driver.Instance, driver.Candidate, error) {
			return table.Create(t.Context(), r, kit.Demands{Longest: 1}, func(context.Context, driver.CreateRequest) (driver.Instance, error) {
				tried++
				return answer, failure
			})
		}
		if in, taken, err := create(); in.ID != "1" || taken.Zone != "z" || err != nil {
			t.Error(in, taken, err)
		}
		failure = refused{kit.Answer{Code: "Full"}}
		in, taken, err := create()
		if e := drover.AsError(err, ""); in.ID != "" || taken.Zone != "" || e.Market != drover.Spot || e.Message != "create instance a: Full: the cloud gave no details" {
			t.Error(in, taken, err)
		}
		r.Name = "ab"
		if _, _, err := create(); drover.KindOf(err) != drover.KindInvalid || tried != 2 {
			t.Error(err, tried)
		}
	})
	t.Run("user data beyond the cloud's limit is refused", func(t *testing.T) {
		r := driver.CreateRequest{Name: "a", Candidates: []driver.Candidate{{}}, Init: drover.NewSecret("#!/bin/sh\n" + strings.Repeat("#", 500))}
		if err := kit.CheckRequest(r, kit.Demands{Longest: 1, UserData: 500}); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
		for _, most := range []int{0, 5000} {
			if err := kit.CheckRequest(r, kit.Demands{Longest: 1, UserData: most}); err != nil {
				t.Error(err)
			}
		}
	})
}
