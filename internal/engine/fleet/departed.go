package fleet

import (
	"slices"
	"time"

	"drover"
)

// Departed is an instance that is gone, in its last state. It is kept because a list may show it again: then its record
// and bill continue, and nothing is billed twice. A Departed is immutable: there may be a thousand, and every State has
// them.
type Departed struct {
	Instance Instance     `json:"instance"`
	At       drover.Time  `json:"at"` // when it counted as gone
	Cost     drover.Money `json:"cost"`
	Shown    *Sighting    `json:"shown,omitempty"` // observed: the last good list has it like this
}

// Departed instances are kept for an hour, and beyond that up to this number. No cloud's lists are known to lag nearly
// as long.
const (
	departedFor   = time.Hour
	departedLeast = 1000
)

// Departed returns the instances that are gone, in the order they went.
func (f *Fleet) Departed() []*Departed { return f.departed }

// Depart records that an instance is gone, with its last state; nil if no list can show it.
func (f *Fleet) Depart(in *Member, was drover.InstanceState, at drover.Time, cost drover.Money) *Departed {
	if in.ProviderID == "" {
		return nil
	}
	last := in.Clone().Durable()
	last.State, last.Candidates, last.Reservations = was, nil, nil
	d := &Departed{Instance: last, At: at, Cost: cost}
	f.departed = append(f.departed, d)
	for len(f.departed) > departedLeast && f.departed[0].At.Add(departedFor) < at {
		f.countShown(f.departed[0], -1)
		f.departed = f.departed[1:]
	}
	return d
}

// Return turns a departed instance into a member, to be added.
func (f *Fleet) Return(d *Departed) *Member {
	f.departed = slices.DeleteFunc(f.departed, func(o *Departed) bool { return o == d })
	f.countShown(d, -1)
	return &Member{Instance: d.Instance.Clone()}
}

// ShowDeparted records how a cloud's last list shows a departed instance, nil if it does not; and reports whether there
// is such an instance.
func (f *Fleet) ShowDeparted(cloud, providerID string, as *Sighting) bool {
	at := slices.IndexFunc(f.departed, func(d *Departed) bool { return d.Instance.Cloud == cloud && d.Instance.ProviderID == providerID })
	if at >= 0 {
		f.countShown(f.departed[at], -1)
		d := *f.departed[at]
		d.Shown = as
		f.departed[at] = &d
		f.countShown(&d, 1)
	}
	return at >= 0
}

func (f *Fleet) countShown(d *Departed, n int) {
	if d.Shown != nil {
		f.shown += n
	}
}

// Shown returns the departed instances that a list shows, so that their end is not certain, in the order they went.
func (f *Fleet) Shown() (shown []*Departed) {
	if f.shown == 0 {
		return nil
	}
	for _, d := range f.departed {
		if d.Shown != nil {
			shown = append(shown, d)
		}
	}
	return shown
}
