package queue_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine/queue"
)

// Ranges behave as a set of indexes under any sequence of operations.
func TestRangesAreASetOfIndexes(t *testing.T) {
	indexes := func(r queue.Ranges) (all []int) {
		for _, run := range r {
			for i := run.First; i <= run.Last; i++ {
				all = append(all, i)
			}
		}
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		var r, o queue.Ranges
		set, other := map[int]bool{}, map[int]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, 20).Draw(t, "index")
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				if r.Remove(i) != set[i] {
					t.Fatalf("removed %d of %v", i, r)
				}
				delete(set, i)
			case 1:
				o.Add(i)
				other[i] = true
			default:
				r.Add(i)
				set[i] = true
			}
			all := slices.Sorted(maps.Keys(set))
			if diff := cmp.Diff(all, indexes(r)); diff != "" || r.Count() != len(all) || r.Has(i) != set[i] {
				t.Fatalf("%v: %s", r, diff)
			}
			if rank, _ := slices.BinarySearch(all, i); r.Rank(i) != rank {
				t.Fatalf("%d has rank %d in %v", i, r.Rank(i), r)
			}
			left := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return other[i] })
			if diff := cmp.Diff(left, indexes(r.Without(o))); diff != "" && len(left)+len(r.Without(o)) > 0 {
				t.Fatalf("%v without %v: %s", r, o, diff)
			}
			few := all[:min(len(all), i)]
			if diff := cmp.Diff(few, indexes(r.Lowest(i))); diff != "" && len(few)+len(r.Lowest(i)) > 0 {
				t.Fatalf("the lowest %d of %v: %s", i, r, diff)
			}
		}
	})
}

// array returns a job with this many elements, all of which wait.
func array(number int64, n int) queue.Job {
	return queue.NewJob(number, "ada", drover.JobSpec{Array: drover.Array{Set: true, Last: n - 1}, Priority: 1})
}

func TestPostponed(t *testing.T) {
	now := drover.Time(1e18)
	t.Run("includes a gang's waiting elements while others of it are live", func(t *testing.T) {
		j := array(1, 6)
		j.Gang = 3
		j.Postpone(1, 2, now)
		if got := j.Postponed; !slices.Equal(got, queue.Ranges{{First: 0, Last: 2}}) {
			t.Errorf("postponed: %v", got)
		}
		if j.Postpone(1, 0, now); len(j.Postponed) > 0 {
			t.Errorf("then postponed: %v", j.Postponed)
		}
	})
	t.Run("includes elements whose retry is not due", func(t *testing.T) {
		j := array(1, 2)
		j.Element(1).Until = now.Add(time.Minute)
		if j.Postpone(1, 0, now); !slices.Equal(j.Postponed, queue.Ranges{{First: 1, Last: 1}}) {
			t.Errorf("postponed: %v", j.Postponed)
		}
		if j.Postpone(1, 0, now.Add(time.Minute)); len(j.Postponed) > 0 {
			t.Errorf("then postponed: %v", j.Postponed)
		}
	})
	t.Run("includes an array's elements beyond max_running", func(t *testing.T) {
		j := array(1, 10)
		j.MaxRunning = 3
		j.Queued.Remove(0) // it runs
		if j.HoldBack(now); !slices.Equal(j.Postponed, queue.Ranges{{First: 3, Last: 9}}) {
			t.Errorf("postponed: %v", j.Postponed)
		}
	})
}

func TestClass(t *testing.T) {
	t.Run("dequeues elements by job number and index", func(t *testing.T) {
		one, two := array(1, 2), array(2, 1)
		c := queue.NewClass(queue.KeyOf(&one, nil))
		c.Add(&two)
		c.Add(&one)
		var got []drover.JobID
		for c.Queued > 0 {
			j, elements := c.Take()
			for _, index := range elements {
				got = append(got, drover.JobID{Number: j.Number, Index: index})
			}
			if in := j.WaitingIn(queue.KeyOf(j, nil)) > 0; c.Has(j) != in {
				t.Errorf("job %d is in the class: %t", j.Number, c.Has(j))
			}
		}
		if want := []drover.JobID{{Number: 1}, {Number: 1, Index: 1}, {Number: 2}}; !slices.Equal(got, want) {
			t.Errorf("dequeued %v", got)
		}
	})
	t.Run("contains only elements with its memory", func(t *testing.T) {
		j := array(1, 4)
		j.Queued.Remove(2)
		j.Element(2).Memory = drover.GiB
		j.Enqueue(2)
		own, grown := queue.KeyOf(&j, nil), queue.KeyOf(&j, nil).With(drover.GiB)
		if j.WaitingIn(own) != 3 || j.WaitingIn(grown) != 1 {
			t.Errorf("%d elements wait with the job's own memory and %d with more", j.WaitingIn(own), j.WaitingIn(grown))
		}
	})
	t.Run("counts only complete gangs", func(t *testing.T) {
		j := array(1, 10)
		j.Gang = 4
		c := queue.NewClass(queue.KeyOf(&j, nil))
		c.Add(&j)
		if got := []int{c.WholeWithin(3), c.WholeWithin(7), c.WholeWithin(9), c.WholeWithin(10)}; !slices.Equal(got, []int{0, 4, 8, 10}) {
			t.Errorf("within 3, 7, 9 and 10: %v", got)
		}
	})
}

func TestQueue(t *testing.T) {
	t.Run("returns a job's followers once", func(t *testing.T) {
		q := queue.New(nil)
		one, two, three := array(1, 1), array(2, 1), array(3, 1)
		two.After, three.After, three.AfterAny = []int64{1}, []int64{1}, []int64{1}
		for _, j := range []*queue.Job{&one, &three, &two} {
			q.Add(j)
		}
		if got := q.Followers(1); !slices.Equal(got, []int64{2, 3}) || len(q.Followers(1)) > 0 {
			t.Errorf("followers: %v", got)
		}
	})
	t.Run("forgets the followers that are requeued without the dependency", func(t *testing.T) {
		q := queue.New(nil)
		two := array(2, 1)
		two.After = []int64{1}
		q.Add(&two)
		q.Remove(2)
		again := array(2, 1)
		q.Add(&again)
		if got := q.Followers(1); len(got) > 0 {
			t.Errorf("followers: %v", got)
		}
	})
	t.Run("distinguishes only relevant labels", func(t *testing.T) {
		q := queue.New([]string{"project", "team"})
		one, two := array(1, 1), array(2, 1)
		one.Labels, two.Labels = map[string]string{"project": "p", "note": "a"}, map[string]string{"project": "p", "note": "b"}
		if q.KeyOf(&one) != q.KeyOf(&two) || q.KeyOf(&one).Labels != "project=p" {
			t.Errorf("the classes are %v and %v", q.KeyOf(&one), q.KeyOf(&two))
		}
	})
	t.Run("skips the retry of an element that no longer waits", func(t *testing.T) {
		q, now := queue.New(nil), drover.Time(1e18)
		j := array(1, 2)
		q.Add(&j)
		for i := range 2 {
			j.Element(i).Until = now.Add(time.Duration(i+1) * time.Second)
			q.TryAt(&j, *j.Element(i))
		}
		j.Queued.Remove(0)
		if at := q.NextTry(); at != now.Add(2*time.Second) {
			t.Errorf("the next retry is at %v", at)
		}
		if due, _ := q.Due(now.Add(time.Second)); due != nil {
			t.Error("a retry is due too early")
		}
		if due, index := q.Due(now.Add(2 * time.Second)); due != &j || index != 1 {
			t.Errorf("element %d of %v is due", index, due)
		}
	})
}

// Jobs may end in any order: the queue finds each until then.
func TestJobsAreFoundByNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, there := queue.New(nil), map[int64]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			n := rapid.Int64Range(1, 50).Draw(t, "number")
			if rapid.Bool().Draw(t, "add") && !there[n] {
				q.Add(&queue.Job{Number: n})
				there[n] = true
			} else {
				q.Remove(n)
				delete(there, n)
			}
			if j := q.Job(n); (j != nil) != there[n] || q.Len() != len(there) {
				t.Fatalf("job %d found: %t; %d jobs, want %d", n, j != nil, q.Len(), len(there))
			}
		}
		var all []int64
		for j := range q.All() {
			all = append(all, j.Number)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(there)), all); diff != "" && len(all)+len(there) > 0 {
			t.Fatal(diff)
		}
	})
}
