package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"drover"
	"drover/internal/engine"
)

// appendState writes a State: first everything except its jobs, then each job. Many jobs are alike, so each has only
// the fields that differ from the job before.
func appendState(to *bytes.Buffer, s engine.State) error {
	jobs := s.Jobs
	s.Jobs = nil
	if err := appendLine(to, s); err != nil {
		return err
	}
	before := engine.Job{}
	for _, j := range jobs {
		if err := appendLine(to, changes(before, j)); err != nil {
			return err
		}
		before = j
	}
	return nil
}

// changes returns the fields of a struct that differ from another's, by their JSON names.
func changes(before, now any) map[string]any {
	changed := map[string]any{}
	was, is := reflect.ValueOf(before), reflect.ValueOf(now)
	for i := range is.NumField() {
		if value := is.Field(i).Interface(); !reflect.DeepEqual(was.Field(i).Interface(), value) {
			changed[fieldName(is.Type().Field(i))] = value
		}
	}
	return changed
}

// jobs reads the jobs that appendState wrote.
type jobs struct {
	known  map[string]bool            // the fields that a job has
	fields map[string]json.RawMessage // of the job before
	left   int                        // bytes of jobs that are still accepted
}

const (
	maxJobs = 512 << 20 // bytes of a State's jobs, written in full
	minJob  = 256       // the least number of bytes that a job counts as, for its use of memory
)

func newJobs() *jobs {
	known := map[string]bool{}
	for f := range reflect.TypeFor[engine.Job]().Fields() {
		known[fieldName(f)] = true
	}
	return &jobs{known, map[string]json.RawMessage{}, maxJobs}
}

// next returns the job that differs from the one before in these fields. It shares no memory with that.
func (b *jobs) next(changed map[string]json.RawMessage) (j engine.Job, err error) {
	maps.DeleteFunc(changed, func(name string, _ json.RawMessage) bool { return !b.known[name] })
	maps.Copy(b.fields, changed)
	text, err := json.Marshal(b.fields)
	if err != nil {
		return j, fmt.Errorf("reading a job: %w", err)
	}
	if b.left -= max(len(text), minJob); b.left < 0 {
		return j, drover.Errorf(drover.KindInvalid, "the jobs in the recording's state exceed the limit of %d bytes", maxJobs)
	}
	return j, json.Unmarshal(text, &j)
}
