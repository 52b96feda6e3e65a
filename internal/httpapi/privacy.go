package httpapi

import (
	"context"
	"fmt"
	"slices"

	"drover"
)

// These belong to a job's user alone: logs, outputs, labels, commands, and the text that explains its end, since that
// may repeat the command. A token that only views or submits shows them for its own user's jobs. Of other jobs it shows
// the rest, so that everybody sees who uses what of the fleet.

// hidden replaces text that the caller may not see.
const hidden = "visible only to the job's user and to operators"

// readsAll reports whether the caller may read what belongs to any user.
func (h *Handler) readsAll(who drover.Identity) bool {
	return h.cfg.Shared || who.Role.Allows(drover.RoleOperate)
}

// mayRead lets callers read the output of their own jobs, and operators that of all jobs. An attempt's token is already
// restricted to its own job.
func (h *Handler) mayRead(ctx context.Context, id drover.JobID) error {
	who := drover.IdentityOf(ctx)
	if h.readsAll(who) || who.Attempt != nil {
		return nil
	}
	job, err := h.cfg.Service.Job(ctx, id)
	if err != nil || owns(who, job) {
		return err
	}
	return notOwn(id, who)
}

func owns(who drover.Identity, job drover.Job) bool { return who.User != "" && job.User == who.User }

// notOwn returns the error for what only an operator may do, because the job is somebody else's.
func notOwn(id drover.JobID, who drover.Identity) error {
	e := drover.AsError(needs(drover.RoleOperate, who), drover.KindForbidden)
	e.Message = fmt.Sprintf("job %v does not belong to %s: %s", id, who.User, e.Message)
	return e
}

// shown returns a job as the caller may see it.
func (h *Handler) shown(ctx context.Context, job drover.Job) drover.Job {
	who := drover.IdentityOf(ctx)
	if h.readsAll(who) || who.Attempt != nil || owns(who, job) {
		return job
	}
	job.Labels, job.Command, job.File = nil, []string{}, ""
	if job.State != drover.JobQueued {
		job.Reason = withoutWords(job.Reason)
	}
	attempts := make([]drover.Attempt, len(job.Attempts))
	for i, a := range job.Attempts {
		a.Reason, a.Warnings = withoutWords(a.Reason), nil
		attempts[i] = a
	}
	job.Attempts = attempts
	return job
}

// withoutWords returns a reason without its text.
func withoutWords(r *drover.Reason) *drover.Reason {
	if r == nil {
		return nil
	}
	silent := *r
	silent.Text = hidden
	return &silent
}

// ownLabels narrows a filter by labels to the caller's own jobs: a result would reveal which labels other jobs have.
func (h *Handler) ownLabels(ctx context.Context, f *drover.JobFilter) (some bool) {
	who := drover.IdentityOf(ctx)
	if len(f.Labels) == 0 || h.readsAll(who) {
		return true
	}
	if f.User == "" {
		f.User = who.User
	}
	return f.User == who.User
}

// explained removes from an explanation how another user's job ended.
func (h *Handler) explained(ctx context.Context, x drover.Explanation) (drover.Explanation, error) {
	id, err := drover.ParseJobID(x.Subject)
	if err != nil || x.Waiting {
		return x, nil
	}
	switch err := h.mayRead(ctx, id); drover.KindOf(err) {
	case "":
	case drover.KindForbidden:
		reasons := make([]drover.Reason, len(x.Reasons))
		for i, r := range x.Reasons {
			reasons[i] = *withoutWords(&r)
		}
		x.Reasons = reasons
	default:
		return x, err
	}
	return x, nil
}

// ownBudgets removes the budgets of other users, and those by label, since labels are private.
func (h *Handler) ownBudgets(ctx context.Context, all []drover.BudgetUse) []drover.BudgetUse {
	who := drover.IdentityOf(ctx)
	if h.readsAll(who) {
		return all
	}
	return slices.DeleteFunc(all, func(b drover.BudgetUse) bool {
		return who.Attempt != nil || b.Scope != "fleet" && (who.User == "" || b.Scope != "user "+who.User)
	})
}

// mostOwners is for how many jobs a stream of events remembers whether they are the caller's.
const mostOwners = 10_000

// witness shows events to one caller.
type witness struct {
	h    *Handler
	ctx  context.Context
	own  map[int64]bool // by a job's number
	full bool           // shows all
}

func (h *Handler) newWitness(ctx context.Context) *witness {
	return &witness{h: h, ctx: ctx, own: map[int64]bool{}, full: h.readsAll(drover.IdentityOf(ctx))}
}

// shown returns an event as the caller may see it: for another user's job, only that something happened to it.
func (w *witness) shown(e drover.Event) drover.Event {
	about := e.Job
	if about == nil && e.Attempt != nil {
		about = &e.Attempt.Job
	}
	if w.full || about == nil || w.owns(*about) {
		return e
	}
	e.Text, e.Reason = fmt.Sprintf("another user's job %v has changed", *about), withoutWords(e.Reason)
	return e
}

func (w *witness) owns(id drover.JobID) bool {
	own, known := w.own[id.Number]
	if known {
		return own
	}
	err := w.h.mayRead(w.ctx, drover.JobID{Number: id.Number, Index: -1})
	if err != nil && drover.KindOf(err) != drover.KindForbidden {
		return false // so that it is looked up again
	}
	if len(w.own) >= mostOwners {
		clear(w.own)
	}
	w.own[id.Number] = err == nil
	return err == nil
}
