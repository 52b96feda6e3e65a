package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/middleware"
	"drover/internal/engine"
	"drover/internal/wire"
)

// job is a job of the fixture that is not an array.
func job(number int64) drover.JobID { return drover.JobID{Number: number, Index: -1} }

// covers D13
func TestWishes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	ctx := drover.WithIdentity(t.Context(), drover.Identity{User: "ada"})
	f.submit(c, "sleep 60", "sleep 60", "true")
	running := func(jobs ...int64) func(*engine.Engine) bool {
		return func(*engine.Engine) bool {
			return !slices.ContainsFunc(jobs, func(n int64) bool { return must(c.stored(ctx, job(n)))(t).State != drover.JobRunning })
		}
	}
	f.until(c, "two jobs run", running(1, 2))

	t.Run("Cancel returns a job that is being cancelled, and records by whom and why", func(t *testing.T) {
		must(c.Cancel(ctx, job(1), "wrong input"))(t)
		must(0, c.Query(ctx, func(e *engine.Engine) {
			for _, a := range e.Attempts() {
				if a.ID.Job == job(1) && a.Stop == nil {
					t.Error("its attempt was not told to end")
				}
			}
		}))(t)
		f.until(c, "the job is final", func(*engine.Engine) bool { return must(c.stored(ctx, job(1)))(t).State.Final() })
		got := must(c.Job(ctx, job(1)))(t)
		if got.State != drover.JobCancelled || got.Reason.Text != "cancelled by ada: wrong input" {
			t.Errorf("it is %s because %+v", got.State, got.Reason)
		}
	})
	t.Run("cancelling it again changes nothing", func(t *testing.T) {
		before := must(c.Job(ctx, job(1)))(t)
		if diff := cmp.Diff(before, must(c.Cancel(ctx, job(1), "again"))(t)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a number means the job even if an instance has the same number", func(t *testing.T) {
		must(0, c.Query(ctx, func(e *engine.Engine) {
			if _, known := e.ExplainInstance("1"); !known {
				t.Error("no instance has the number 1")
			}
		}))(t)
		x := must(c.Explain(ctx, "1"))(t)
		if len(x) != 1 || x[0].Subject != "1" || x[0].Reasons[0].Code != drover.ReasonCancelled {
			t.Errorf("it is explained by %+v", x)
		}
	})
	t.Run("a requeued job runs again under the next attempt number", func(t *testing.T) {
		must(c.Retry(ctx, job(1), ""))(t)
		f.until(c, "the job runs", running(1))
		if got := must(c.Job(ctx, job(1)))(t); len(got.Attempts) != 2 || got.Attempts[1].Number != 2 {
			t.Errorf("its attempts are %+v", got.Attempts)
		}
		if _, err := c.Retry(ctx, job(1), ""); drover.KindOf(err) != drover.KindConflict {
			t.Errorf("requeuing a running job: %v", err)
		}
	})
	t.Run("priority 0 stops a running job and keeps it queued", func(t *testing.T) {
		if got := must(c.SetPriority(ctx, job(2), 0))(t); got.Priority != 0 {
			t.Errorf("its priority is %d", got.Priority)
		}
		f.until(c, "it is queued", func(*engine.Engine) bool { return must(c.stored(ctx, job(2)))(t).State == drover.JobQueued })
		x := must(c.Explain(ctx, "2"))(t)
		if len(x) != 1 || !x[0].Waiting || x[0].Reasons[0].Code != drover.ReasonHeld {
			t.Errorf("it is explained by %+v", x)
		}
	})
	t.Run("missing jobs are not found, and nonsense is refused", func(t *testing.T) {
		for what, err := range map[string]error{
			"cancel": second(c.Cancel(ctx, job(99), "")), "retry": second(c.Retry(ctx, job(99), "")), "priority": second(c.SetPriority(ctx, job(99), 1)),
			"explain": second(c.Explain(ctx, "99")), "instance": second(c.Instance(ctx, "nobody")), "logs": second(c.Logs(ctx, drover.LogRequest{Job: job(99), Stream: drover.Stdout})),
		} {
			if drover.KindOf(err) != drover.KindNotFound {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, subject := range []string{"pool/nobody", "group/nobody"} {
			if _, err := c.Explain(ctx, subject); err == nil || !strings.Contains(err.Error(), `there is no pool "nobody"`) {
				t.Errorf("explaining %s: %v", subject, err)
			}
		}
		if _, err := c.SetPriority(ctx, job(1), -1); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("priority -1: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// covers D5
func TestVerbs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	ctx := drover.WithIdentity(t.Context(), drover.Identity{User: "ada"})
	in := must(c.Instruct(ctx, "1", drover.VerbHold, "a look"))(t)
	if in.Idle != drover.IdleHold || in.Reason == nil || in.Reason.Text != "held by ada: a look" {
		t.Errorf("held: %s because %+v", in.Idle, in.Reason)
	}
	f.until(c, "the hold is on the instance", func(*engine.Engine) bool {
		list := must(f.cfg.Clouds[0].Driver.List(ctx, nil))(t)
		return list[0].Tags["drover-idle"] == "hold" && list[0].Tags["drover-name"] == in.Name
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c, stop = f.begin()
	defer stop()
	if in := must(c.Instance(ctx, in.Name))(t); in.Idle != drover.IdleHold {
		t.Errorf("after a restart it is %s", in.Idle)
	}
	must(c.Instruct(ctx, in.ProviderID, drover.VerbKill, ""))(t)
	f.until(c, "it is gone", func(*engine.Engine) bool { return must(c.Instance(ctx, in.Name))(t).State == drover.InstanceGone })
	if _, err := c.Instruct(ctx, in.Name, drover.VerbHold, ""); drover.KindOf(err) != drover.KindConflict {
		t.Errorf("holding a gone instance: %v", err)
	}
}

// covers D10
func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	f.until(c, "the types are known", func(e *engine.Engine) bool { return len(e.Offers()) > 0 })
	spec := drover.JobSpec{Name: "big", Command: []string{"true"}, Priority: 1, Attempts: 1, Spot: drover.SpotPrefer, Resources: drover.Resources{CPU: 1 << 40}}
	_, err := c.Submit(t.Context(), drover.Submission{Batch: drover.Batch{Name: "b", Jobs: []drover.JobSpec{spec}}})
	if drover.KindOf(err) != drover.KindInvalid || !strings.Contains(fmt.Sprint(err), "job big") || !strings.Contains(fmt.Sprint(err), "vCPUs") {
		t.Errorf("a job that fits nowhere: %v", err)
	}
	spec.Resources = drover.Resources{CPU: 1}
	spec.Files = []drover.File{{Path: "in", Hash: strings.Repeat("0", 64)}}
	_, err = c.Submit(t.Context(), drover.Submission{Batch: drover.Batch{Name: "b", Jobs: []drover.JobSpec{spec}}})
	if drover.KindOf(err) != drover.KindInvalid {
		t.Errorf("without its inputs' contents: %v", err)
	}
	if n := must(c.Status(t.Context()))(t).Jobs[drover.JobQueued]; n != 0 {
		t.Errorf("%d jobs are queued", n)
	}
}

// covers D15
func TestLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	gate := filepath.Join(t.TempDir(), "gate")
	f.submit(c, "echo first; while [ ! -e "+gate+" ]; do sleep 0.02; done; head -c 3000000 /dev/zero; echo last")
	request := drover.LogRequest{Job: job(1), Stream: drover.Stdout, Follow: true}
	var wg sync.WaitGroup
	follow := func(began chan<- struct{}) {
		defer wg.Done()
		r := must(c.Logs(t.Context(), request))(t)
		defer r.Close()
		first := make([]byte, 6)
		if _, err := io.ReadFull(r, first); err != nil || string(first) != "first\n" {
			t.Errorf("it begins with %q (%v)", first, err)
		}
		began <- struct{}{}
		rest, err := io.ReadAll(r)
		if err != nil || len(rest) != 3000005 || !strings.HasSuffix(string(rest), "last\n") {
			t.Errorf("%d bytes follow (%v)", len(rest), err)
		}
	}
	const followers = 20
	began := make(chan struct{}, followers)
	for range followers {
		wg.Add(1)
		go follow(began)
	}
	for range followers {
		<-began
	}
	request.Follow = false
	now := must(c.Logs(t.Context(), request))(t)
	if text := must(io.ReadAll(now))(t); string(text) != "first\n" {
		t.Errorf("the current output is %q", text)
	}
	now.Close()
	request.Offset = 2
	now = must(c.Logs(t.Context(), request))(t)
	if text := must(io.ReadAll(now))(t); string(text) != "rst\n" {
		t.Errorf("the current output from its third byte on is %q", text)
	}
	now.Close()
	wg.Go(func() {
		r := must(c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Follow: true, Offset: 6}))(t)
		defer r.Close()
		if rest, err := io.ReadAll(r); err != nil || len(rest) != 3000005 {
			t.Errorf("%d bytes follow the first 6 (%v)", len(rest), err)
		}
	})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	f.until(c, "it is stored", f.allFinal)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c, stop = f.begin()
	defer stop()
	stored := must(c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Follow: true}))(t)
	defer stored.Close()
	if text := must(io.ReadAll(stored))(t); len(text) != 3000011 {
		t.Errorf("%d bytes were stored", len(text))
	}
	end := must(c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Follow: true, Offset: 3000006}))(t)
	defer end.Close()
	if text := must(io.ReadAll(end))(t); string(text) != "last\n" {
		t.Errorf("the end of the stored output is %q", text)
	}
	if left := must(filepath.Glob(filepath.Join(f.cfg.Spool, "*")))(t); len(left) > 0 {
		t.Errorf("the spool still has %q", left)
	}
}

// covers D15
func TestAnAttemptDoesNotGetTheOutputOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	must(c.Submit(t.Context(), drover.Submission{Batch: drover.Batch{Name: "batch", Jobs: []drover.JobSpec{{
		Name: "a", Command: []string{"sh", "-c", "case $DROVER_ATTEMPT in 2) sleep 60;; *) echo this is $DROVER_ATTEMPT; exit 1;; esac"}, Priority: 1, Attempts: 2, Spot: drover.SpotPrefer,
		Retry: drover.Retry{Times: 1}, Resources: drover.Resources{CPU: 500, Memory: 32 * drover.MiB, Disk: drover.MiB},
	}}}}))(t)
	f.until(c, "the second attempt runs", func(e *engine.Engine) bool {
		attempts := e.Attempts()
		return len(attempts) == 1 && attempts[0].ID.Number == 2 && attempts[0].State == drover.AttemptRunning
	})
	live := must(c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Attempt: 2}))(t)
	defer live.Close()
	must(c.Instruct(t.Context(), "1", drover.VerbKill, ""))(t)
	f.until(c, "the job is final", f.allFinal)
	if text, err := io.ReadAll(live); drover.KindOf(err) != drover.KindNotFound {
		t.Errorf("read after it was lost, attempt 2 gives %q, %v", text, err)
	}
	for attempt, want := range map[int]string{1: "this is 1\n", 3: "this is 3\n", 0: "this is 3\n"} {
		r := must(c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Attempt: attempt}))(t)
		if text := string(must(io.ReadAll(r))(t)); text != want {
			t.Errorf("attempt %d wrote %q, want %q", attempt, text, want)
		}
		r.Close()
	}
	_, err := c.Logs(t.Context(), drover.LogRequest{Job: job(1), Stream: drover.Stdout, Attempt: 2})
	if drover.KindOf(err) != drover.KindNotFound || !strings.Contains(err.Error(), "the attempt was lost") {
		t.Errorf("the lost attempt: %v", err)
	}
}

func TestASlowReaderSkipsWhatTheSpoolHasOverwritten(t *testing.T) {
	file := must(os.Create(filepath.Join(t.TempDir(), "spool")))(t)
	defer file.Close()
	s := newSpool(file, func() {})
	block := make([]byte, 1<<20)
	for i := range byte(20) {
		for j := range block {
			block[j] = i
		}
		if _, err := s.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	s.end(true, nil)
	offset, left, got := int64(0), int64(0), int64(0)
	for {
		n, skipped, whole, _, err := s.readAt(block, offset)
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			break
		}
		for _, b := range block[:n] {
			if int64(b) != offset>>20 {
				t.Fatalf("at %d there is %d", offset, b)
			}
			offset++
			got++
		}
		offset, left = offset+skipped, left+skipped
	}
	if left != 20<<20-spoolSize || got != spoolSize {
		t.Errorf("%d bytes arrived and %d were skipped", got, left)
	}
}

func TestASpoolWaitsForItsFastestReader(t *testing.T) {
	s := newSpool(must(os.Create(filepath.Join(t.TempDir(), "spool")))(t), func() {})
	defer s.file.Close()
	slow, fast := &logReader{}, &logReader{}
	s.reads(slow, 0, true)
	s.reads(fast, 0, true)
	must(s.Write(make([]byte, spoolSize-fetchSize)))(t)
	if s.ahead() {
		t.Error("it waits although there is room for one more piece")
	}
	must(s.Write(make([]byte, 1)))(t)
	if !s.ahead() {
		t.Error("it overtakes all its readers")
	}
	s.reads(fast, 1, true)
	if s.ahead() {
		t.Error("it waits for the slow reader")
	}
	s.reads(fast, 0, false)
	if !s.ahead() {
		t.Error("the reader who left is still counted")
	}
}

func TestHistory(t *testing.T) {
	ended := make(chan struct{})
	newController := func() *Controller { return &Controller{history: newHistory(7), ended: ended} }
	add := func(c *Controller, n int) {
		for i := range n {
			c.history.add(1, engine.Note{Level: engine.Info, Text: fmt.Sprint(i), Instance: fmt.Sprint("i-", i%2)})
		}
	}
	read := func(c *Controller, f drover.EventFilter) (texts []string, missed int) {
		f.Recent = true
		for ev, err := range c.Events(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			if missed += ev.Missed; ev.Missed == 0 {
				texts = append(texts, ev.Text)
			}
		}
		return texts, missed
	}
	t.Run("returns remembered events, and those after a given one", func(t *testing.T) {
		c := newController()
		add(c, 4)
		all, _ := read(c, drover.EventFilter{})
		after, missed := read(c, drover.EventFilter{After: "7-1"})
		if diff := cmp.Diff([][]string{{"0", "1", "2", "3"}, {"2", "3"}}, [][]string{all, after}); diff != "" || missed != 0 {
			t.Error(diff, missed)
		}
	})
	t.Run("returns the last wanted events", func(t *testing.T) {
		c := newController()
		add(c, 6)
		last, _ := read(c, drover.EventFilter{Last: 2})
		ofOne, _ := read(c, drover.EventFilter{Last: 2, Instance: "i-0"})
		all, _ := read(c, drover.EventFilter{Last: 100})
		if diff := cmp.Diff([][]string{{"4", "5"}, {"2", "4"}, {"0", "1", "2", "3", "4", "5"}}, [][]string{last, ofOne, all}); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("filters by instance and by level", func(t *testing.T) {
		c := newController()
		add(c, 4)
		c.history.add(1, engine.Note{Level: engine.Warn, Text: "oh", Instance: "i-1"})
		c.history.add(1, engine.Note{Level: engine.Debug, Text: "hm", Instance: "i-1"})
		one, _ := read(c, drover.EventFilter{Instance: "i-1"})
		warnings, _ := read(c, drover.EventFilter{Level: "warn"})
		everything, _ := read(c, drover.EventFilter{Level: "debug", Instance: "i-1"})
		if diff := cmp.Diff([][]string{{"1", "3", "oh"}, {"oh"}, {"1", "3", "oh", "hm"}}, [][]string{one, warnings, everything}); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("counts the events that a late reader missed", func(t *testing.T) {
		c := newController()
		add(c, remembered+10)
		texts, missed := read(c, drover.EventFilter{After: "7-3"})
		if missed != 6 || len(texts) != remembered {
			t.Errorf("%d were missed and %d arrived", missed, len(texts))
		}
	})
	t.Run("for another controller's event everything is new, and the number missed unknown", func(t *testing.T) {
		c := newController()
		add(c, 2)
		if texts, missed := read(c, drover.EventFilter{After: "6-900"}); len(texts) != 2 || missed != -1 {
			t.Errorf("%q arrived, %d were missed", texts, missed)
		}
		for gap := range c.Events(t.Context(), drover.EventFilter{After: "6-900", Recent: true}) {
			if texts, missed := read(c, drover.EventFilter{After: gap.ID}); len(texts) != 2 || missed != 0 {
				t.Errorf("after the gap %q arrived, %d were missed", texts, missed)
			}
			break
		}
	})
	t.Run("wakes waiting readers, and ends them with the controller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &Controller{history: newHistory(7), ended: make(chan struct{})}
			var texts []string
			var last error
			go func() {
				for ev, err := range c.Events(t.Context(), drover.EventFilter{}) {
					texts, last = append(texts, ev.Text), err
				}
			}()
			synctest.Wait()
			add(c, 1)
			synctest.Wait()
			if len(texts) != 1 {
				t.Errorf("%q arrived", texts)
			}
			close(c.ended)
			synctest.Wait()
			if !errors.Is(last, errEnded) {
				t.Errorf("the last error is %v", last)
			}
		})
	})
}

func TestAWishThatComesTooLateIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	defer stop()
	err := c.wish(t.Context(), engine.InstructAsked{Instance: 9, Verb: drover.VerbHold})
	if e := drover.AsError(err, drover.KindInternal); e == nil || e.Kind != drover.KindConflict || e.Message != "instance 9 is gone" {
		t.Errorf("%v", err)
	}
	if err := c.wish(t.Context(), engine.InstructAsked{Instance: 9, Verb: drover.VerbKill}); err != nil {
		t.Errorf("killing a gone instance: %v", err)
	}
}

func TestWishesAreAnsweredInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := replies{raised: make(chan struct{})}
		ended := make(chan struct{})
		var mu sync.Mutex
		var got []string
		wait := func(ctx context.Context, wish int64) {
			r.ask()
			defer r.done()
			err := r.wait(ctx, wish, ended)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprint(wish, " ", err))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go wait(ctx, 2)
		synctest.Wait()
		r.deliver(engine.Reply{Wish: 1})
		synctest.Wait()
		go wait(ctx, 3)
		synctest.Wait()
		r.deliver(engine.Reply{Wish: 3, Err: drover.Errorf(drover.KindConflict, "too late")})
		synctest.Wait()
		go wait(ctx, 4)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		go wait(t.Context(), 5)
		synctest.Wait()
		close(ended)
		synctest.Wait()
		slices.Sort(got) // 2 and 3 are answered together
		if diff := cmp.Diff([]string{"2 <nil>", "3 too late", "4 context deadline exceeded", "5 the controller has stopped"}, got); diff != "" {
			t.Error(diff)
		}
		if r.refused != nil {
			t.Errorf("%v is kept although nobody waits", r.refused)
		}
	})
}

// covers D8
func TestWhereJobsReachTheAPI(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{"": "http://127.0.0.1:", "https://drover.example": "https://drover.example\n"} {
		f := newFixture(t)
		f.cfg.URL = url
		c, stop := f.begin()
		f.submit(c, "echo $DROVER_API")
		f.until(c, "the job is final", f.allFinal)
		if got := f.log("a.out"); !strings.HasPrefix(got, want) {
			t.Errorf("with url %q a job finds %q", url, got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// covers D15
func TestEachLineAtTheEndOfARunnersLogIsKeptOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	l := &link{id: 1, name: "i-1", c: c}
	c.links[1] = l
	l.catchUp([]string{"a", "b"})
	l.Log("c")
	l.catchUp([]string{"b", "c", "d"}) // after a reconnection
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, c.runnerLog(1)); diff != "" {
		t.Error(diff)
	}
	delete(c.links, 1)
	c.disconnect(1)
	l.Log("late")
	if lines := c.runnerLog(1); len(lines) > 0 {
		t.Errorf("lines of a gone instance: %q", lines)
	}
}

// covers D15
func TestARunnersLogIsKeptIfTheCloudEndedItsInstance(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	for n, code := range []string{drover.ReasonVanished, drover.ReasonInterrupted} {
		id := int64(n + 1)
		in := engine.Instance{ID: id, Name: code, Cloud: "here", State: drover.InstanceStopping, Idle: drover.IdleRun}
		if err := f.store.Commit(t.Context(), []engine.Write{{Instance: &in}}); err != nil {
			t.Fatal(err)
		}
		l := &link{id: id, name: code, c: c}
		c.links[id] = l
		l.Log("the last line")
		c.keepRunnerLogs(t.Context(), []engine.Write{{Gone: &engine.InstanceEnd{ID: id, Reason: drover.Reason{Code: code}}}})
		if got := must(f.store.Instance(t.Context(), 0, code))(t); !slices.Equal(got.RunnerLog, []string{"the last line"}) {
			t.Errorf("%s: the instance's runner log is %q", code, got.RunnerLog)
		}
	}
}

// covers D15
func TestADeadInstancesRunnerLogIsSeparateFromItsReason(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Clouds[0].Driver = middleware.ForFleet(f.cfg.Clouds[0].Driver, "test")
	f.cfg.Settings.Clouds[0].ListInterval = 200 * time.Millisecond
	var log strings.Builder // read once the controller has stopped
	f.cfg.Log = slog.New(slog.NewJSONHandler(&log, nil))
	c, stop := f.begin()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	victim := must(c.Instance(t.Context(), "1"))(t)
	if len(victim.RunnerLog) == 0 {
		t.Error("the runner's log of a live instance is not shown")
	}
	for _, in := range must(f.cfg.Clouds[0].Driver.List(t.Context(), nil))(t) {
		if err := f.cfg.Clouds[0].Driver.Destroy(t.Context(), in.ID); err != nil {
			t.Fatal(err)
		}
	}
	f.until(c, "the instance is gone", func(*engine.Engine) bool {
		return must(f.store.Instance(t.Context(), 0, "1"))(t).State == drover.InstanceGone
	})
	dead := must(c.Instance(t.Context(), "1"))(t)
	if len(dead.RunnerLog) == 0 || strings.Contains(dead.Reason.Text, dead.RunnerLog[0]) || strings.Contains(dead.Reason.Text, "runner said") {
		t.Errorf("the reason is %q and the runner's log %q", dead.Reason.Text, dead.RunnerLog)
	}
	if err := c.CancelAll(t.Context(), "seen enough"); err != nil {
		t.Fatal(err)
	}
	c.CloseFleet(t.Context(), true)
	f.until(c, "the fleet is at rest", (*engine.Engine).AtRest)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), `"runner_log":[`); n != 1 {
		t.Errorf("the end of the runner's log is logged %d times", n)
	}
}

func TestOnlyItsOwnInstanceIsBelievedAboutAnAttemptsEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	id := drover.AttemptID{Job: job(1), Number: 1}
	own, other := &link{id: 1, name: "own", c: c, ends: map[drover.AttemptID]drover.Exit{}}, &link{id: 2, name: "other", c: c, ends: map[drover.AttemptID]drover.Exit{}}
	hello := wire.Hello{Attempts: []wire.Attempt{{ID: id, Exit: &drover.Exit{Code: 3, Stdout: "true"}, Proof: f.cfg.Key.AttemptProof(c.state.Nonce, "own", id)}}}
	if diff := cmp.Diff([]engine.Report{{ID: id, Exit: &drover.Exit{Code: 3}}}, own.reports(hello)); diff != "" {
		t.Errorf("the engine's events differ (-want +got)\n%s", diff)
	}
	other.keepEnd(id, drover.Exit{Stdout: "forged"})
	if exit, ok := own.exit(id); !ok || exit.Stdout != "true" {
		t.Errorf("it ended with %v, %t", exit, ok)
	}
}

func TestARunnerCannotFillTheControllersMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, end := f.begin()
	defer end()
	l := &link{id: 1, c: c, ctx: t.Context(), claims: make(chan struct{}, 1), ends: map[drover.AttemptID]drover.Exit{}}
	for n := range 3 * manyEnds {
		l.keepEnd(drover.AttemptID{Job: job(int64(n)), Number: 1}, drover.Exit{})
	}
	if kept := len(l.ends); kept > manyEnds {
		t.Errorf("%d invented attempts are remembered", kept)
	}
	l.claims <- struct{}{}
	l.API(wire.API{Conn: 1}) // accepting it would panic, since there is no connection
}
