package fleet_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/queue"
)

var (
	size  = drover.Resources{CPU: 4000, Memory: 16 * drover.GiB, Disk: 100 * drover.GiB}
	need  = drover.Resources{CPU: 1000, Memory: 4 * drover.GiB, Disk: drover.GiB}
	class = queue.Key{Shape: drover.Shape{Need: need}, Priority: 50}
	want  = fleet.Demand{Shape: class.Shape}
)

// instance returns a ready instance with no attempts.
func instance(id int64) *fleet.Member {
	return &fleet.Member{Instance: fleet.Instance{
		ID: id, Name: fmt.Sprint("drover-", id), Cloud: "local", ProviderID: fmt.Sprint("i-", id), Type: drover.InstanceType{Name: "standard-4", Resources: size},
		Resources: size, State: drover.InstanceIdle, Idle: drover.IdleRun, Created: 1, Observed: fleet.Observed{Connected: true},
	}}
}

// A fleet lives for months, and most never ask for the census.
func TestRemovedInstancesAreNotKeptInMemory(t *testing.T) {
	f, removed := fleet.New(nil), []weak.Pointer[fleet.Member]{}
	for id := range int64(1000) {
		in := instance(id + 1)
		f.Add(in)
		in.State = drover.InstanceGone
		f.Remove(in)
		f.Index()
		removed = append(removed, weak.Make(in))
	}
	runtime.GC()
	kept := 0
	for _, p := range removed {
		if p.Value() != nil {
			kept++
		}
	}
	if kept > 100 {
		t.Errorf("%d of %d removed instances are still in memory", kept, len(removed))
	}
	runtime.KeepAlive(f)
}

func needs(*fleet.Attempt) drover.Resources { return need }

func check(t interface {
	Helper()
	Fatal(...any)
}, f *fleet.Fleet) {
	t.Helper()
	if err := f.Check(needs); err != nil {
		t.Fatal(err)
	}
}

// Whatever happens to instances, their load, reservations, index and census are consistent, and the State determines
// them.
func TestDerivedDataFollowsFromTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, next := fleet.New(nil), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if f.Len() == 0 || rapid.IntRange(0, 4).Draw(t, "add") == 0 {
				next++
				f.Add(instance(next))
				continue
			}
			in := f.All()[rapid.IntRange(0, f.Len()-1).Draw(t, "instance")]
			act(t, f, in, rapid.IntRange(0, 7).Draw(t, "act"))
			check(t, f)
		}
		if diff := cmp.Diff(state(f), state(rebuilt(f))); diff != "" {
			t.Fatalf("a fleet rebuilt from the State has another State (-was +is):\n%s", diff)
		}
	})
}

// act changes an instance as the engine does.
func act(t *rapid.T, f *fleet.Fleet, in *fleet.Member, what int) {
	switch what {
	case 0:
		if in.Holds(&want) {
			in.Take(need)
			f.Load(in, &fleet.Attempt{ID: drover.AttemptID{Job: drover.JobID{Number: in.ID, Index: len(in.Load)}, Number: 1}, Instance: in.ID})
			in.State = drover.InstanceRunning
		}
	case 1:
		if n := len(in.Load); n > 0 {
			f.Unload(in, in.Load[n-1])
			if in.Give(need); n == 1 {
				in.State = drover.InstanceIdle
			}
		}
	case 2:
		if in.Room.Fits(need) {
			in.Reserve(class, 1)
		}
	case 3:
		if n := in.Reserved(class); n > 0 {
			in.Reserve(class, -rapid.IntRange(1, n).Draw(t, "fewer"))
		}
	case 4:
		in.Unreserve()
	case 5:
		in.Idle = rapid.SampledFrom([]drover.IdleBehavior{drover.IdleRun, drover.IdleHold, drover.IdleDrain}).Draw(t, "idle")
		f.Revise(in)
	case 6:
		if len(in.Load) == 0 {
			in.State = drover.InstanceGone
			f.Remove(in)
		}
	case 7:
		f.SetProviderID(in, rapid.SampledFrom([]string{"", "i-1", "i-2"}).Draw(t, "provider ID"))
		if in.ID < f.ByProviderID(in.Cloud, in.ProviderID).ID {
			t.Fatal("of two instances with the same provider ID, the younger one is found")
		}
	}
	f.Changed(in)
}

func rebuilt(f *fleet.Fleet) *fleet.Fleet {
	instances, attempts, departed := f.State()
	anew := fleet.New(departed)
	for _, in := range instances {
		anew.Add(&fleet.Member{Instance: in})
	}
	for _, a := range attempts {
		in := anew.Member(a.Instance)
		in.Take(need)
		anew.Load(in, &a)
	}
	return anew
}

func state(f *fleet.Fleet) [3]any {
	instances, attempts, departed := f.State()
	return [3]any{instances, attempts, departed}
}

func TestIndexFollowsChanges(t *testing.T) {
	f := fleet.New(nil)
	small, large := instance(1), instance(2)
	f.Add(small)
	f.Add(large)
	small.Take(need)
	f.Load(small, &fleet.Attempt{Instance: small.ID})
	small.State = drover.InstanceRunning
	f.Changed(small)
	if diff := cmp.Diff([]int64{2, 1}, ids(f.Index().Ready)); diff != "" {
		t.Errorf("the emptier instance is not first (-want +got):\n%s", diff)
	}
	large.Idle = drover.IdleHold
	f.Changed(large)
	if diff := cmp.Diff([]int64{1}, ids(f.Index().Ready)); diff != "" {
		t.Errorf("a held instance is still listed (-want +got):\n%s", diff)
	}
	check(t, f)
}

func ids(all []*fleet.Member) (of []int64) {
	for _, in := range all {
		of = append(of, in.ID)
	}
	return of
}

func TestCensusFollowsRevisions(t *testing.T) {
	f := fleet.New(nil)
	f.Add(instance(1))
	f.Add(instance(2))
	if n := f.Census().Hold(&want, 100, 1); n != 8 {
		t.Errorf("two empty instances hold %d quarter-sized jobs, want 8", n)
	}
	f.Member(1).Lost = []int64{1}
	if n := f.Census().Hold(&want, 100, 1); n != 8 {
		t.Errorf("before Revise they hold %d, want 8", n)
	}
	f.Revise(f.Member(1))
	if n := f.Census().Hold(&want, 100, 1); n != 4 {
		t.Errorf("after one has lost the job they hold %d, want 4", n)
	}
	if n := f.Census().Hold(&want, 100, 2); n != 8 {
		t.Errorf("they hold %d of another job, want 8", n)
	}
}

func TestServes(t *testing.T) {
	ada, bob := drover.OwnerMark("ada"), drover.OwnerMark("bob")
	for _, c := range []struct {
		name  string
		in    fleet.Member
		of    string
		wants bool
	}{
		{"an instance without an owner serves everyone where instances are shared", fleet.Member{}, ada, true},
		{"a user's instance serves that user", fleet.Member{Instance: fleet.Instance{Owner: ada}}, ada, true},
		{"a user's instance serves no other user", fleet.Member{Instance: fleet.Instance{Owner: ada}}, bob, false},
		{"a used instance without an owner serves nobody where instances belong to users", fleet.Member{Instance: fleet.Instance{Used: true}, Policy: fleet.Policy{Sharing: drover.ShareUser}}, ada, false},
		{"everyone's instance must isolate its jobs", fleet.Member{Policy: fleet.Policy{Sharing: drover.ShareEveryone}}, ada, false},
		{"a pool may allow no jobs", fleet.Member{Instance: fleet.Instance{Owner: ada}, Policy: fleet.Policy{NoJobs: true}}, ada, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.in.Serves(&fleet.Demand{Owner: c.of}); got != c.wants {
				t.Errorf("serves: %v", got)
			}
		})
	}
}

func TestListsProveAnInstanceGoneOnlyAfterTheirLag(t *testing.T) {
	const lag = time.Minute
	in := instance(1)
	in.Missing = drover.Time(0).Add(time.Hour)
	for _, c := range []struct {
		name   string
		after  time.Duration
		lag    time.Duration
		change func(in *fleet.Member)
		gone   bool
	}{
		{"the first list without it", 0, lag, nil, false},
		{"a second list within the lag", lag - 1, lag, nil, false},
		{"a second list after the lag", lag, lag, nil, true},
		{"without lag, one second is enough", time.Second, 0, nil, true},
		{"without an address, it must be missing for twice the lag", lag, lag, func(in *fleet.Member) { in.Unlocated = true }, false},
		{"without an answer to its create call, even longer", 2*lag - 1, lag, func(in *fleet.Member) { in.ProviderID = "" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := *in
			if c.change != nil {
				c.change(&in)
			}
			if got := in.MissedTwice(in.Missing.Add(c.after), c.lag); got != c.gone {
				t.Errorf("proved gone: %v", got)
			}
		})
	}
}

func TestDepartedInstanceReturnsUnchanged(t *testing.T) {
	f := fleet.New(nil)
	in := instance(1)
	f.Add(in)
	in.State = drover.InstanceGone
	d := f.Depart(in, drover.InstanceIdle, drover.Time(0).Add(time.Hour), 7)
	f.Remove(in)
	if !f.ShowDeparted("local", "i-1", &fleet.Sighting{Name: "drover-1"}) || len(f.Shown()) == 0 {
		t.Fatal("a list shows the departed instance, but Shown does not")
	}
	if d.Shown != nil {
		t.Error("a Departed that a State may hold was changed")
	}
	back := f.Return(f.Departed()[0])
	if back.ID != 1 || back.State != drover.InstanceIdle || back.Connected || len(f.Shown()) > 0 {
		t.Errorf("the instance returns as %+v", back.Instance)
	}
	f.Add(back)
	check(t, f)
}
