package telemetry

import (
	"sync"

	"drover"
	"drover/internal/engine"
)

// lives are the instances that are not gone, and what was counted for each.
type lives struct {
	mu    sync.Mutex
	known map[int64]*life // guarded by mu
}

// life is how far an instance has come. A time is 0 until the instance has come that far.
type life struct {
	cloud, kind, market string
	state               drover.InstanceState

	created   drover.Time // its cloud accepted it
	loggedIn  drover.Time // the last login; used until it is ready
	ready     drover.Time // it passed its boot probe
	told      drover.Time // when its end was decided
	reclaimed bool        // its cloud takes it back
}

func newLife(in engine.Instance) *life {
	l := &life{created: in.Created, ready: in.Ready}
	l.become(in)
	return l
}

// become copies the instance's properties, which are certain only once its cloud has accepted it, and when its end was
// decided.
func (l *life) become(in engine.Instance) {
	l.cloud, l.kind, l.market, l.state = in.Cloud, in.Type.Name, string(in.Market), in.State
	if in.State == drover.InstanceStopping && l.told == 0 && in.Reason != nil {
		l.told = in.Reason.Since
	}
}

// instance measures the phases that an instance has completed. If the instance was adopted, its earlier phases are
// unknown.
func (t *Telemetry) instance(in engine.Instance) {
	t.lives.mu.Lock()
	defer t.lives.mu.Unlock()
	l := t.lives.known[in.ID]
	if l == nil {
		l = newLife(in)
		t.lives.known[in.ID] = l
	}
	l.become(in)
	if in.Reclaimed != nil && !l.reclaimed {
		l.reclaimed = true
		t.count(interruptions, l.cloud, l.kind, l.market)
	}
	if l.created == 0 && in.Created != 0 {
		l.created = in.Created
		t.measure(bootTime, in.Created.Sub(in.Asked), l.cloud, "accept")
	}
	if l.ready == 0 && in.Ready != 0 {
		l.ready = in.Ready
		if l.loggedIn != 0 {
			t.measure(bootTime, l.loggedIn.Sub(l.created), l.cloud, "reach")
			t.measure(bootTime, l.ready.Sub(l.loggedIn), l.cloud, "prove")
		}
	}
}

// LoggedIn records that a login to an instance succeeded and its host key was verified.
func (t *Telemetry) LoggedIn(instance int64, at drover.Time) {
	t.lives.mu.Lock()
	defer t.lives.mu.Unlock()
	if l := t.lives.known[instance]; l != nil {
		l.loggedIn = at
	}
}

// gone counts an instance's end.
func (t *Telemetry) gone(at drover.Time, end engine.InstanceEnd) {
	t.lives.mu.Lock()
	defer t.lives.mu.Unlock()
	l := t.lives.known[end.ID]
	if l == nil {
		return
	}
	delete(t.lives.known, end.ID)
	t.count(instancesEnded, l.cloud, end.Reason.Code)
	if l.told != 0 {
		t.measure(shutdownTime, at.Sub(l.told), l.cloud)
	}
}

// disconnected counts a lost connection, but not one that closes because Drover stops or destroys the instance.
func (t *Telemetry) disconnected(instance int64) {
	t.lives.mu.Lock()
	defer t.lives.mu.Unlock()
	if l := t.lives.known[instance]; l != nil && l.state != drover.InstanceStopping && l.state != drover.InstanceStopped {
		t.count(disconnects, l.cloud)
	}
}
