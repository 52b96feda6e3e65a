package replay

import (
	"reflect"
	"strings"

	"drover"
	"drover/internal/engine"
)

// Subject is a job, an element of an array, an attempt or an instance that a recording may contain.
type Subject struct {
	text     string
	attempt  drover.AttemptID // with Number 0 any of its Job; without a Job it is an instance
	instance int64            // the engine's number for it, once that is known
}

// ParseSubject parses 17, 17.3, 17.3/1, or else an instance's name, or its cloud's id for it.
func ParseSubject(text string) (Subject, error) {
	if id, err := drover.ParseAttemptID(text); err == nil {
		return Subject{text: text, attempt: id}, nil
	}
	if id, err := drover.ParseJobID(text); err == nil {
		return Subject{text: text, attempt: drover.AttemptID{Job: id}}, nil
	}
	if text == "" || strings.ContainsAny(text, " \t\n/") {
		return Subject{}, drover.Errorf(drover.KindInvalid, "%q is not a job, an attempt or an instance", text).
			WithHint("write an id such as 17, 17.3 or 17.3/1, or an instance's name")
	}
	return Subject{text: text}, nil
}

// String returns the subject as it was written.
func (s *Subject) String() string { return s.text }

// Explain returns the engine's explanation of the subject, if it has one.
func (s *Subject) Explain(e *engine.Engine) (drover.Explanation, bool) {
	if s.attempt.Job.Number != 0 {
		return e.Explain(s.attempt.Job)
	}
	return e.ExplainInstance(s.text)
}

// In reports whether an event, or what an engine has just decided on it, concerns the subject. An event about a whole
// array concerns its elements; a decision about the whole array, which may follow from an event of another element,
// does not.
func (s *Subject) In(e *engine.Engine, ev engine.Event, d engine.Decision) bool {
	if s.attempt.Job.Number == 0 {
		if in, ok := e.Find(s.text); ok {
			s.instance = in.ID
		}
	}
	return s.in(reflect.ValueOf(ev.Body), "", true) || s.in(reflect.ValueOf(d.Writes), "", false) || s.in(reflect.ValueOf(d.Effects), "", false) ||
		s.in(reflect.ValueOf(d.Notes), "", false)
}

// in searches for the subject in a value of the field with this name.
func (s *Subject) in(v reflect.Value, field string, whole bool) bool {
	if !v.IsValid() || v.IsZero() {
		return false
	}
	switch x := v.Interface().(type) {
	case drover.AttemptID:
		return s.isAttempt(x)
	case drover.JobID:
		return s.isJob(x, whole)
	case engine.Job:
		return s.isJob(drover.JobID{Number: x.Number, Index: -1}, whole)
	case engine.JobEnd:
		return s.isJob(drover.JobID{Number: x.Number, Index: -1}, whole)
	case engine.ElementRow:
		return s.isJob(drover.JobID{Number: x.Job, Index: x.Element.Index}, whole)
	case engine.Instance:
		return s.instance != 0 && x.ID == s.instance || x.Name == s.text
	case engine.InstanceEnd:
		return s.instance != 0 && x.ID == s.instance
	}
	switch v.Kind() {
	case reflect.Int64:
		return field == "Instance" && v.Int() == s.instance || field == "Job" && s.isJob(drover.JobID{Number: v.Int(), Index: -1}, whole)
	case reflect.String:
		return s.attempt.Job.Number == 0 && v.String() == s.text
	}
	return s.inside(v, field, whole)
}

// inside searches for the subject in a value's parts.
func (s *Subject) inside(v reflect.Value, field string, whole bool) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return s.in(v.Elem(), field, whole)
	case reflect.Slice:
		for i := range v.Len() {
			if s.in(v.Index(i), field, whole) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && s.in(v.Field(i), f.Name, whole) {
				return true
			}
		}
	}
	return false
}

func (s *Subject) isAttempt(id drover.AttemptID) bool {
	if s.attempt.Number != 0 {
		return id == s.attempt
	}
	return s.isJob(id.Job, false)
}

func (s *Subject) isJob(id drover.JobID, whole bool) bool {
	own := s.attempt.Job
	return s.attempt.Number == 0 && own.Number != 0 && id.Number == own.Number && (own.Index < 0 || id.Index == own.Index || whole && id.Index < 0)
}
