package record

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// fill sets everything in a value that can be set.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	}
}

// written returns a segment with only a State.
func written(t *testing.T, s engine.State) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{}, s)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

// reread returns a State that was written and read.
func reread(t *testing.T, s engine.State) engine.State {
	t.Helper()
	r, err := NewReader(written(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return r.State
}

func TestAState(t *testing.T) {
	full := engine.Job{}
	fill(reflect.ValueOf(&full).Elem())
	full.Postponed = nil // it follows from the rest

	t.Run("is read back completely, whatever differs between successive jobs", func(t *testing.T) {
		s := start()
		s.Jobs = []engine.Job{{Number: 1}, full, {Number: 2}, full, full}
		equal(t, "state", reread(t, s), s)
	})

	t.Run("is read back with jobs that share no memory", func(t *testing.T) {
		s := start()
		s.Jobs = []engine.Job{full, full}
		s = reread(t, s)
		s.Jobs[0].Queued[0].First = 99
		s.Jobs[0].Cancel.Cause = "other"
		equal(t, "the other job", s.Jobs[1], full)
	})
}

// crowd returns this many single jobs of a few shapes, as from several batches, some of which have been tried.
func crowd(n int) (jobs []engine.Job) {
	at := drover.Time(1_700_000_000_000_000_000)
	for i := range n {
		if i%5000 == 0 {
			at = at.Add(time.Duration(i) * 7919 * time.Microsecond)
		}
		cpu := drover.MilliCPU(500 << (i * 7 % 4))
		jobs = append(jobs, engine.Job{
			Number: int64(i + 1), Name: fmt.Sprintf("align-sample-%d", i*7919%100_003), User: []string{"ada", "grace"}[i/5000%2],
			Shape:    drover.Shape{Need: drover.Resources{CPU: cpu, Memory: drover.Bytes(cpu) * drover.MiB, Disk: drover.GiB}, Spot: drover.SpotPrefer},
			Priority: drover.DefaultPriority, Attempts: 3, Timeout: time.Hour, Queued: engine.Ranges{{First: -1, Last: -1}}, Since: at,
		})
		if i%50 == 0 {
			jobs[i].Tried = []engine.Element{{Index: -1, Number: 1, Lost: 1}}
		}
	}
	return jobs
}

// arrays returns the same number of elements in a few arrays, most of whose elements wait.
func arrays(n, size int) (jobs []engine.Job) {
	for i, j := range crowd(n / size) {
		j.Array = drover.Array{First: 0, Last: size - 1, Set: true}
		j.Queued = engine.Ranges{{First: size / 10, Last: size - 1}}
		for k := range 20 {
			j.Tried = append(j.Tried, engine.Element{Index: k, Number: 1 + i%2})
		}
		jobs = append(jobs, j)
	}
	return jobs
}

func TestAStateTakesLittleRoomForEachQueuedJob(t *testing.T) {
	const jobs, most = 100_000, 16.0 // bytes
	for name, list := range map[string][]engine.Job{"single jobs": crowd(jobs), "arrays of a thousand": arrays(jobs, 1000)} {
		t.Run(name, func(t *testing.T) {
			s := start()
			s.Jobs = list
			each := float64(written(t, s).Len()) / jobs
			t.Logf("%.2f bytes a job", each)
			if each > most {
				t.Errorf("%.1f bytes a job, more than %v", each, most)
			}
		})
	}
}

// BenchmarkState begins a segment with 100,000 single jobs, and reads it.
func BenchmarkState(b *testing.B) {
	s := start()
	s.Jobs = crowd(100_000)
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewWriter(&bytes.Buffer{}, Header{}, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		var out bytes.Buffer
		w, err := NewWriter(&out, Header{}, s)
		if err == nil {
			err = w.Close()
		}
		for b.Loop() && err == nil {
			_, err = NewReader(bytes.NewReader(out.Bytes()))
		}
		if err != nil {
			b.Fatal(err)
		}
	})
}
