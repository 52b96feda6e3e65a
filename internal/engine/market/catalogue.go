package market

import (
	"cmp"
	"slices"

	"drover"
)

// Catalogue is what a cloud offers. It comes as what has changed since the one that is known, which both sides name by the hash that came with it. So a
// cloud of thousands of offerings, of which a few prices move, costs the few in every recording.
type Catalogue struct {
	Name      string            `json:"name"` // of the cloud
	Offerings []drover.Offering `json:"offerings"`
	Known     bool              `json:"known"`          // Offerings have been heard
	Hash      string            `json:"hash,omitempty"` // of them, as the shell gave it
	Throttles []Throttle        `json:"throttles,omitempty"`
}

// OfferingKey tells an offering from the others of its cloud.
type OfferingKey struct {
	Type   string        `json:"type"`
	Zone   string        `json:"zone"`
	Market drover.Market `json:"market"`
}

// KeyOf is what tells the offering from the others of its cloud.
func KeyOf(o drover.Offering) OfferingKey { return OfferingKey{o.Type.Name, o.Zone, o.Market} }

func (k OfferingKey) compare(o OfferingKey) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), cmp.Compare(k.Zone, o.Zone), cmp.Compare(k.Market, o.Market))
}

// Find is the offering of a key, if there is one.
func (c *Catalogue) Find(key OfferingKey) (o drover.Offering, listed bool) {
	at, listed := slices.BinarySearchFunc(c.Offerings, key, findOffering)
	if !listed {
		return o, false
	}
	return c.Offerings[at], true
}

func findOffering(o drover.Offering, key OfferingKey) int { return KeyOf(o).compare(key) }

func compareOfferings(a, b drover.Offering) int {
	return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), KeyOf(a).compare(KeyOf(b)))
}

// Sorted is a catalogue's offerings in the order in which it keeps them. It shares no memory with the one given.
func Sorted(all []drover.Offering) []drover.Offering {
	all = slices.Clone(all)
	slices.SortFunc(all, compareOfferings)
	return all
}

// Changes is what makes one catalogue of a cloud into another, both of them Sorted: the offerings that are new or not as they were, and those
// that there are no more.
func Changes(was, now []drover.Offering) (changed []drover.Offering, removed []OfferingKey) {
	for len(was) > 0 || len(now) > 0 {
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = compareOfferings(was[0], now[0])
		}
		switch {
		case order < 0:
			removed, was = append(removed, KeyOf(was[0])), was[1:]
			continue
		case order > 0:
			changed = append(changed, now[0])
		default:
			if was[0] != now[0] {
				changed = append(changed, now[0])
			}
			was = was[1:]
		}
		now = now[1:]
	}
	return changed, removed
}

// revised is a catalogue after what has changed of it. It shares no memory with the one before.
func revised(was, changed []drover.Offering, removed []OfferingKey) []drover.Offering {
	over := func(o drover.Offering) bool {
		_, anew := slices.BinarySearchFunc(changed, KeyOf(o), findOffering)
		_, gone := slices.BinarySearchFunc(removed, KeyOf(o), OfferingKey.compare)
		return anew || gone
	}
	kept := slices.DeleteFunc(slices.Clone(was), over)
	return Sorted(append(kept, changed...))
}

// Update is what a cloud says that it offers now.
type Update struct {
	Base      string // the hash of the catalogue that it changes; empty: it is the whole
	Hash      string
	Offerings []drover.Offering // all, or those that are new or have changed
	Removed   []OfferingKey
}

// Revise takes over what a cloud offers now, and reports whether that is anything new. An update that rests upon another catalogue than the one that
// there is says nothing: then the whole is to be asked for.
func (m *Market) Revise(c *Catalogue, u Update) (news, askAgain bool) {
	switch {
	case u.Base != "" && u.Base != c.Hash:
		c.Hash = ""
		return false, true
	case u.Base != "" && c.Known && len(u.Offerings)+len(u.Removed) == 0:
		c.Hash = u.Hash
		return false, false
	}
	offerings := Sorted(u.Offerings)
	if u.Base != "" {
		offerings = revised(c.Offerings, offerings, u.Removed)
	}
	news = !c.Known || !slices.Equal(c.Offerings, offerings)
	c.Offerings, c.Hash, c.Known = offerings, u.Hash, true
	if news {
		m.offerings = nil
		m.revision++
	}
	return news, false
}
