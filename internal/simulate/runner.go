package simulate

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// connect logs in to an instance once it answers, if that is before the connection attempt fails.
func (w *world) connect(effect int64, f engine.Connect) {
	v := w.vms[f.Instance]
	fails := func(kind drover.ErrorKind, text string) engine.Body {
		return engine.ConnectFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(kind, "%s", text)}
	}
	switch {
	case v == nil:
		w.answer(callTime, fails(drover.KindUnreachable, "no answer"))
	case v.boots > w.now.Add(dialTime):
		w.answer(dialTime, fails(drover.KindUnreachable, "no answer"))
	default:
		w.agenda.Add(max(w.now, v.boots).Add(loginTime), func() {
			if v.dead {
				w.tell(fails(drover.KindUnreachable, "the connection ended"))
				return
			}
			w.hello(effect, v)
		})
	}
}

// hello is a runner's first message, which lists its attempts.
func (w *world) hello(effect int64, v *vm) {
	v.linked = true
	w.up(v)
	ev := engine.Connected{Effect: effect, Instance: v.id, HostKey: v.name, Notice: v.notice}
	for _, r := range v.runs {
		if !r.ended {
			ev.Attempts = append(ev.Attempts, engine.Report{ID: r.id})
		}
	}
	w.tell(ev)
}

// cut ends an instance's control stream.
func (w *world) cut(v *vm) {
	if v == nil || !v.linked {
		return
	}
	v.linked = false
	w.tell(engine.Disconnected{Instance: v.id, Heard: w.now, Text: "the connection ended"})
}

// start makes a runner start an attempt, which ends after the job's run time.
func (w *world) start(effect int64, f engine.Start) {
	v := w.vms[f.Instance]
	if v == nil || !v.linked {
		w.tell(engine.StartFailed{Effect: effect, Attempt: f.Attempt, Err: drover.Errorf(drover.KindTransient, "not connected")})
		return
	}
	t := w.in.Trace.Jobs[f.Attempt.Job.Number-1]
	r := &run{id: f.Attempt, need: w.in.shape(t).Need, begun: w.now}
	v.runs = append(v.runs, r)
	w.m.began(v.hire, r.need)
	if f.Attempt.Number == 1 {
		w.m.waited(w.now.Sub(w.m.begin.Add(t.Submit)))
	}
	w.after(t.Runtime, func() { w.exit(v, r, drover.Exit{}) })
	w.tell(engine.Started{Effect: effect, Attempt: f.Attempt})
	if v.notice != nil {
		w.exit(v, r, interrupted)
	}
}

// interrupted is how a job ends that is stopped because its instance is being reclaimed.
var interrupted = drover.Exit{Code: 143, Signal: "terminated", Cause: drover.CauseInterrupted}

// exit ends an attempt's command.
func (w *world) exit(v *vm, r *run, exit drover.Exit) {
	if r.ended {
		return
	}
	r.ended = true
	if exit.Code == 0 {
		w.m.ended(v.hire, r.need, w.now.Sub(r.begun))
	} else {
		w.m.again(v.hire, r.need, w.now.Sub(r.begun))
	}
	exit.Started, exit.Ended = r.begun, w.now
	w.answer(messageTime, engine.Exited{Instance: v.id, Attempt: r.id, Exit: exit})
}

// stop makes a runner end an attempt immediately.
func (w *world) stop(f engine.Stop) {
	if v := w.vms[f.Instance]; v != nil && v.linked {
		if at := slices.IndexFunc(v.runs, func(r *run) bool { return r.id == f.Attempt }); at >= 0 {
			w.exit(v, v.runs[at], drover.Exit{Code: 143, Signal: "terminated", Cause: drover.CauseStopped})
		}
	}
}

// collect fetches an attempt's outputs, after which its instance forgets the attempt.
func (w *world) collect(effect int64, f engine.Collect) {
	v, ev := w.vms[f.Instance], engine.Collected{Effect: effect, Attempt: f.Attempt}
	if v == nil || !v.linked {
		ev.Err = drover.Errorf(drover.KindTransient, "not connected")
	} else {
		v.runs = slices.DeleteFunc(v.runs, func(r *run) bool { return r.id == f.Attempt })
	}
	w.tell(ev)
}
