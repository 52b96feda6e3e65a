package simtest

import (
	"drover"
	"drover/internal/engine"
)

// mayBeTogether checks a fully written decision for gangs whose attempts it begins or whose elements it queues. Each
// gang starts whole, and no part of it continues to run while another part waits, or waits or runs once another part has
// failed or been cancelled.
func (w *World) mayBeTogether(writes []engine.Write) {
	for _, wr := range writes {
		if wr.Attempt == nil && wr.Element == nil {
			continue
		}
		id := drover.JobID{}
		begins := wr.Attempt != nil && wr.Attempt.Attempt.State == drover.AttemptStarting && wr.Attempt.Attempt.Stop == nil
		if wr.Attempt != nil {
			id = wr.Attempt.Attempt.ID.Job
		} else {
			id = drover.JobID{Number: wr.Element.Job, Index: wr.Element.Element.Index}
		}
		if j, there := w.Disk.jobs[id.Number]; there && j.Gang > 0 {
			w.mayBeWhole(j, id.Index, begins)
		}
	}
}

// mayBeWhole checks the gang of an element. The flag means that an attempt of the element is about to begin.
func (w *World) mayBeWhole(j engine.Job, index int, begins bool) {
	first := j.Array.First + (index-j.Array.First)/j.Gang*j.Gang
	waits, runs, left, ended := 0, 0, 0, 0
	for i := first; i < first+j.Gang; i++ {
		id := drover.JobID{Number: j.Number, Index: i}
		a, live := w.Disk.attempts[id]
		if live && (a.State != drover.AttemptStarting || a.Stop != nil) {
			left++
		}
		switch state, final := w.Disk.Final[id]; {
		case final && state != drover.JobSucceeded:
			ended++
		case final:
		case live && a.State != drover.AttemptCollecting && a.Stop == nil:
			runs++
		case j.Queued.Has(i):
			waits++
		}
	}
	switch older := w.recipe.PutBack > 0; {
	case begins && waits > 0:
		w.fail("element %d of job %d begins while %d of its gang wait", index, j.Number, waits)
	case begins && left > 0:
		w.fail("element %d of job %d begins while %d of its gang have yet to end", index, j.Number, left)
	case waits > 0 && runs > 0 && !older:
		w.fail("%d of the gang of element %d of job %d run on while %d wait", runs, index, j.Number, waits)
	case ended > 0 && waits+runs > 0 && !older:
		w.fail("%d of the gang of element %d of job %d wait and %d run on though %d did not succeed", waits, index, j.Number, runs, ended)
	}
}
