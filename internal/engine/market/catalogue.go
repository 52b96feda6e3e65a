package market

import (
	"cmp"
	"slices"

	"drover"
)

// Catalogue is the offerings of one cloud. It is updated by differences from the known one, which both sides identify
// by its hash. So a cloud with thousands of offerings, of which a few prices move, adds only those few to a recording.
type Catalogue struct {
	Name      string            `json:"name"` // of the cloud
	Offerings []drover.Offering `json:"offerings"`
	Missing   []drover.Offering `json:"missing,omitempty"` // in the update before the last one, but not in the last
	Known     bool              `json:"known"`             // Offerings have been received
	Hash      string            `json:"hash,omitempty"`    // of Offerings, as the shell computed it
	Throttles []Throttle        `json:"throttles,omitempty"`
}

// OfferingKey identifies an offering within its cloud.
type OfferingKey struct {
	Type   string        `json:"type"`
	Zone   string        `json:"zone"`
	Market drover.Market `json:"market"`
}

// KeyOf returns the offering's key.
func KeyOf(o drover.Offering) OfferingKey { return OfferingKey{o.Type.Name, o.Zone, o.Market} }

func (k OfferingKey) compare(o OfferingKey) int {
	return cmp.Or(cmp.Compare(k.Type, o.Type), cmp.Compare(k.Zone, o.Zone), cmp.Compare(k.Market, o.Market))
}

// Find returns the offering with a key, if there is one.
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

// Sorted returns offerings in the order of a catalogue. It shares no memory with all.
func Sorted(all []drover.Offering) []drover.Offering {
	all = slices.Clone(all)
	slices.SortFunc(all, compareOfferings)
	return all
}

// Changes returns the difference between two Sorted catalogues of one cloud: new or changed offerings, and the keys of
// removed ones.
func Changes(was, now []drover.Offering) (changed []drover.Offering, removed []OfferingKey) {
	for _, o := range now {
		if at, known := slices.BinarySearchFunc(was, o, compareOfferings); !known || was[at] != o {
			changed = append(changed, o)
		}
	}
	for _, o := range missing(was, now) {
		removed = append(removed, KeyOf(o))
	}
	return changed, removed
}

// missing returns the offerings of a Sorted catalogue that another one lacks.
func missing(was, now []drover.Offering) (all []drover.Offering) {
	for _, o := range was {
		if _, still := slices.BinarySearchFunc(now, o, compareOfferings); !still {
			all = append(all, o)
		}
	}
	return all
}

// revised applies Changes to a catalogue. It shares no memory with was.
func revised(was, changed []drover.Offering, removed []OfferingKey) []drover.Offering {
	over := func(o drover.Offering) bool {
		_, anew := slices.BinarySearchFunc(changed, KeyOf(o), findOffering)
		_, gone := slices.BinarySearchFunc(removed, KeyOf(o), OfferingKey.compare)
		return anew || gone
	}
	kept := slices.DeleteFunc(slices.Clone(was), over)
	return Sorted(append(kept, changed...))
}

// Update is a cloud's new catalogue, or its changes.
type Update struct {
	Base      string // hash of the catalogue that it changes; empty: it is complete
	Hash      string
	Offerings []drover.Offering // all of them, or the new and changed ones
	Removed   []OfferingKey
}

// Revise applies an update, and reports whether it changed anything. If the update is for another catalogue than the
// known one, askAgain requests the complete one.
func (m *Market) Revise(c *Catalogue, u Update) (news, askAgain bool) {
	switch {
	case u.Base != "" && u.Base != c.Hash:
		c.Hash = ""
		return false, true
	case u.Base != "" && c.Known && len(u.Offerings)+len(u.Removed) == 0:
		c.Hash, c.Missing = u.Hash, nil
		return false, false
	}
	offerings := Sorted(u.Offerings)
	if u.Base != "" {
		offerings = revised(c.Offerings, offerings, u.Removed)
	}
	news = !c.Known || !slices.Equal(c.Offerings, offerings)
	c.Missing = missing(c.Offerings, offerings)
	c.Offerings, c.Hash, c.Known = offerings, u.Hash, true
	if news {
		m.offerings = nil
		m.revision++
	}
	return news, false
}
