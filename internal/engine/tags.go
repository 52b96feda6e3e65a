package engine

import (
	"cmp"
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/timers"
)

// An instance's idle behaviour is stored, and set as a tag on the VM, so that it holds even if the store is lost. Every
// change sets Retag, which is cleared only when the cloud has accepted the current behaviour: a call whose answer was
// lost is repeated.

// retag sets the tag at the instance's next check. The caller writes the instance.
func (e *Engine) retag(in *fleet.Member) {
	in.Retag = true
	in.Tagging.Fails, in.Tagging.Retry, in.Tagging.Lost = 0, 0, false
	e.touch(in)
}

// checkTag asks the cloud to set the tag, one call at a time.
func (e *Engine) checkTag(in *fleet.Member) {
	if !e.due(e.nextTag(in)) {
		return
	}
	f := &SetTags{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID, Idle: in.Idle, Owner: in.Owner}
	if in.State == drover.InstanceStopped {
		f.Stopped = cmp.Or(in.Switched, e.s.Now)
	}
	in.Tagging.Idle, in.Tagging.Off = f.Idle, f.Stopped != 0
	in.Tagging.Call = e.effect(Effect{SetTags: f})
}

// nextTag returns when checkTag has something to do, 0 for never.
func (e *Engine) nextTag(in *fleet.Member) drover.Time {
	switch {
	case !in.Retag || in.Tagging.Call != 0 || in.Tagging.Lost || in.ProviderID == "":
		return 0
	case in.State == drover.InstanceStopping || in.State == drover.InstanceGone || e.cloud(in.Cloud) == nil:
		return 0
	}
	return max(in.Tagging.Retry, e.cloud(in.Cloud).NoTag, 1)
}

func (e *Engine) tagged(b Tagged) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Tagging.Call) {
		return
	}
	t := &in.Tagging
	t.Call = 0
	e.touch(in)
	switch {
	case b.Err == nil:
		t.Fails, t.Retry, t.Set = 0, 0, true
		if t.Idle == in.Idle && t.Off == (in.State == drover.InstanceStopped) { // otherwise it has changed meanwhile
			in.Retag = false
			e.writeInstance(in)
		}
		return
	case b.Err.Kind == drover.KindNotFound:
		t.Lost = true
	}
	t.Fails++
	t.Retry = max(b.Err.RetryAt, e.s.Now.Add(timers.Backoff(t.Fails, time.Second, 5*time.Minute)))
	if c := e.cloud(in.Cloud); c != nil && b.Err.Kind == drover.KindRateLimit {
		c.NoTag = max(c.NoTag, t.Retry)
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("tagging instance %s as %s failed: %s", in.Name, t.Idle, b.Err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(b.Err)})
}

// tagSeen compares a listed tag with what it should be.
func (e *Engine) tagSeen(in *fleet.Member, idle drover.IdleBehavior) {
	in.Tagging.Lost = false
	if idle != in.Idle && !in.Retag {
		e.retag(in)
		e.writeInstance(in)
	}
}
