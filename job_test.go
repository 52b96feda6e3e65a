package drover_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"drover"
)

// jobIDs draws ids of jobs and of array elements.
var jobIDs = rapid.Custom(func(t *rapid.T) drover.JobID {
	return drover.JobID{Number: rapid.Int64Min(1).Draw(t, "number"), Index: rapid.IntMin(-1).Draw(t, "index")}
})

func TestJobID(t *testing.T) {
	t.Run("every id survives a round trip, as text and in JSON", rapid.MakeCheck(func(t *rapid.T) {
		id := jobIDs.Draw(t, "id")
		if got, err := drover.ParseJobID(id.String()); got != id || err != nil {
			t.Fatalf("%v came back as %v, %v", id, got, err)
		}
		in := map[drover.JobID]drover.JobID{id: id, {}: {}}
		out, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var got map[drover.JobID]drover.JobID
		if err := json.Unmarshal(out, &got); err != nil || len(got) != 2 || got[id] != id {
			t.Fatalf("%s came back as %v, %v", out, got, err)
		}
	}))
	t.Run("the text is 17 or 17.3", func(t *testing.T) {
		if s := (drover.JobID{Number: 17, Index: -1}).String(); s != "17" {
			t.Error(s)
		}
		if s := (drover.JobID{Number: 17, Index: 3}).String(); s != "17.3" {
			t.Error(s)
		}
	})
	t.Run("malformed ids are refused", func(t *testing.T) {
		for _, text := range []string{"", "0", "-1", "17.", ".3", "17.-3", "17.3.1", "seventeen", "17 ", "9223372036854775808"} {
			if id, err := drover.ParseJobID(text); err == nil {
				t.Errorf("%q was read as %v", text, id)
			}
		}
	})
}

func TestAttemptID(t *testing.T) {
	t.Run("every id survives a round trip", rapid.MakeCheck(func(t *rapid.T) {
		id := drover.AttemptID{Job: jobIDs.Draw(t, "job"), Number: rapid.IntMin(1).Draw(t, "number")}
		var got drover.AttemptID
		if text, err := id.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != id {
			t.Fatalf("%v came back as %v", id, got)
		}
	}))
	t.Run("its folder is a single path element, and no other attempt's", rapid.MakeCheck(func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) drover.AttemptID {
			return drover.AttemptID{
				Job:    drover.JobID{Number: rapid.Int64Range(1, 30).Draw(t, "number"), Index: rapid.IntRange(-1, 30).Draw(t, "index")},
				Number: rapid.IntRange(1, 30).Draw(t, "attempt"),
			}
		}), 2, 2, func(id drover.AttemptID) drover.AttemptID { return id }).Draw(t, "ids")
		a, b := ids[0].Folder(), ids[1].Folder()
		if a == b || filepath.Base(a) != a || !filepath.IsLocal(a) {
			t.Fatalf("%v has %q, %v has %q", ids[0], a, ids[1], b)
		}
	}))
	t.Run("malformed ids are refused", func(t *testing.T) {
		for _, text := range []string{"", "17", "17/", "17/0", "17/-1", "/1", "17.3/1/2", "17/one"} {
			if id, err := drover.ParseAttemptID(text); err == nil {
				t.Errorf("%q was read as %v", text, id)
			}
		}
	})
}

func TestAlternatives(t *testing.T) {
	for pattern, want := range map[string]int{
		"*.csv": 1, "": 1, "{a,b}": 2, "{a,b}/{c,d,e}": 6, "{a,{b,c}}x": 3, `\{a,b}`: 1, "{a}": 1, "x{,y}": 2,
	} {
		if got := drover.Alternatives(pattern); got != want {
			t.Errorf("%s stands for %d patterns, want %d", pattern, got, want)
		}
	}
	if got := drover.Alternatives(strings.Repeat("{a,b}", 60) + "/x"); got <= drover.MaxAlternatives {
		t.Errorf("sixty pairs stand for only %d patterns", got)
	}
}

func TestArraysWithGaps(t *testing.T) {
	a := drover.Array{First: 1, Last: 9, Set: true, Only: "1,3,5-9"}
	if a.Size() != 7 || a.String() != "1,3,5-9" || !a.Has(3) || a.Has(4) || a.Has(10) {
		t.Errorf("%v has %d elements, 3: %v, 4: %v", a, a.Size(), a.Has(3), a.Has(4))
	}
	all := drover.Array{First: 2, Last: 4, Set: true}
	if all.Size() != 3 || all.String() != "2-4" || all.Has(1) {
		t.Errorf("%v has %d elements", all, all.Size())
	}
	if none := (drover.Array{}); none.Size() != 1 || none.String() != "" || none.Has(0) {
		t.Errorf("no array is %q", none)
	}
}

func TestGangOf(t *testing.T) {
	t.Run("gangs are consecutive elements, counted from the first", func(t *testing.T) {
		s := drover.JobSpec{Array: drover.Array{First: 5, Last: 10, Set: true}, Gang: 3}
		for index, want := range map[int][2]int{5: {0, 0}, 7: {0, 2}, 8: {1, 0}, 10: {1, 2}} {
			if gang, place := s.GangOf(index); [2]int{gang, place} != want {
				t.Errorf("element %d is in place %d of gang %d", index, place, gang)
			}
		}
	})
}

func TestArray(t *testing.T) {
	t.Run("a job that is not an array has one element, an array those in its range", func(t *testing.T) {
		for a, want := range map[drover.Array]int{{}: 1, {Set: true}: 1, {First: 1, Last: 20, Set: true}: 20} {
			if got := a.Size(); got != want {
				t.Errorf("%+v has %d elements", a, got)
			}
		}
	})
}

func TestRetries(t *testing.T) {
	some, all := drover.Retry{ExitCodes: []int{75, 3}, Times: 2}, drover.Retry{Times: 3}
	for code, want := range map[int][2]bool{0: {}, 1: {false, true}, 3: {true, true}, 75: {true, true}, 137: {false, true}} {
		if got := [2]bool{some.Retries(code), all.Retries(code)}; got != want {
			t.Errorf("exit code %d: got %v, want %v", code, got, want)
		}
	}
}
