package engine

import (
	"cmp"
	"slices"

	"drover"
)

// A cloud's catalogue comes as what has changed since the one that the engine has, which both sides name by the hash that came with it. So a
// cloud of thousands of offerings, of which a few prices move, costs the few in every recording.

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

// key is what tells the offering that the instance is of from the others of its cloud.
func (in *instance) key() OfferingKey { return OfferingKey{in.Type.Name, in.Zone, in.Market} }

// isOf reports whether the instance is of the offering.
func (in *instance) isOf(o drover.Offering) bool { return in.Cloud == o.Cloud && in.key() == KeyOf(o) }

// listed is what the list says of others like the instance, if anything.
func (c *Cloud) listed(in *instance) (o drover.Offering, listed bool) {
	at, listed := slices.BinarySearchFunc(c.Offerings, in.key(), findOffering)
	if !listed {
		return o, false
	}
	return c.Offerings[at], true
}

func compareOfferings(a, b drover.Offering) int {
	return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), KeyOf(a).compare(KeyOf(b)))
}

// Sorted is a catalogue in the order in which the engine keeps it. It shares no memory with the one given.
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

func findOffering(o drover.Offering, key OfferingKey) int { return KeyOf(o).compare(key) }

// revise takes over what a cloud offers now, and reports whether that is anything new. What rests upon another catalogue than the one that
// there is says nothing: the whole is asked for.
func (e *Engine) revise(c *Cloud, b Offered) (news bool) {
	switch {
	case b.Base != "" && b.Base != c.Hash:
		c.Hash, c.NextOffer = "", e.s.Now
		return false
	case b.Base != "" && c.Known && len(b.Offerings)+len(b.Removed) == 0:
		c.Hash = b.Hash
		return false
	}
	offerings := Sorted(b.Offerings)
	if b.Base != "" {
		offerings = revised(c.Offerings, offerings, b.Removed)
	}
	news = !c.Known || !slices.Equal(c.Offerings, offerings)
	c.Offerings, c.Hash, c.Known = offerings, b.Hash, true
	return news
}
