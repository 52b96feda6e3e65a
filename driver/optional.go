package driver

import (
	"cmp"
	"context"
	"slices"

	"drover"
)

// What a cloud may be able to do beyond what every cloud does, each thing an interface of its own. They are found by As, through whatever
// decorators a cloud wears.

// Starter is a Cloud whose instances can be stopped and started again, with their volumes, tags and host keys; their addresses may change.
// Both return once the cloud has accepted; doing it again succeeds. KindNotFound if there is no such instance, KindUnsupported if this one
// cannot be stopped, as EC2's spot instances cannot. Start meets the errors that Create does: a cloud may have no room for it any more.
type Starter interface {
	Stop(ctx context.Context, id string) error
	Start(ctx context.Context, id string) error
}

// Describer is a Cloud that can be asked for one instance by its id. A list may lag behind what the cloud does; this is the closer look.
type Describer interface {
	// Describe returns the instance of this id as List would, whatever tags it bears: a stopped one too, and one that the cloud took back for
	// as long as List has it as Reclaimed. KindNotFound if there is none, or if the cloud still shows one that has ended for good. Only the
	// cloud's own word is KindNotFound: what it cannot tell now is KindTransient. A new instance may be KindNotFound for as long as
	// Capabilities.ListLag. Beside KindNotFound the instance has nothing but Ended, if the cloud knows when it ended.
	Describe(ctx context.Context, id string) (Instance, error)
}

// DiskGrower is a Cloud that makes the root volume of an instance larger, while it runs, and what is on it is kept.
type DiskGrower interface {
	// GrowDisk brings the volume to the size, if it is smaller: doing it again succeeds. It returns once the cloud has accepted; the instance may
	// see it later. KindNotFound if there is no such instance, KindUnsupported if its volume stays as it is. What is KindTransient may have happened.
	GrowDisk(ctx context.Context, id string, size drover.Bytes) error
}

// Image is something that instances boot from.
type Image struct {
	ID      string // as Candidate.Image has it
	Name    string
	Arch    drover.Arch // empty: any
	Created drover.Time
}

// ImageFinder is a Cloud that finds images by more than their ids.
type ImageFinder interface {
	// FindImages lists the images that ref may mean: that of this id, else those whose names match it, where * stands for any text. It may
	// list images of other architectures. None is no error.
	FindImages(ctx context.Context, ref string, arch drover.Arch) ([]Image, error)
}

// PricePoint is one step of an offering's price history: the hourly price from a moment on.
type PricePoint struct {
	From  drover.Time
	Price drover.Money
}

// PriceHistorian is a Cloud whose prices move.
type PriceHistorian interface {
	// PriceHistory lists the prices of an offering since a moment, as SortPrices leaves them: newest first, each change once. They have in them
	// what Offerings' have.
	PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]PricePoint, error)
}

// SortPrices brings a price history, in which steps may be repeated and in any order, into the form in which it is told. Of two prices that
// begin at the same moment the higher one counts.
func SortPrices(points []PricePoint) []PricePoint {
	all := slices.Clone(points)
	slices.SortFunc(all, func(a, b PricePoint) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.Price, a.Price)) })
	all = slices.CompactFunc(all, func(a, b PricePoint) bool { return a.From == b.From })
	all = slices.CompactFunc(all, func(a, b PricePoint) bool { return a.Price == b.Price })
	slices.Reverse(all)
	return all
}

// PricesSince is, of a price history as SortPrices leaves it, what held at a moment and what came later.
func PricesSince(all []PricePoint, since drover.Time) []PricePoint {
	if at := slices.IndexFunc(all, func(p PricePoint) bool { return p.From <= since }); at >= 0 {
		return all[:at+1]
	}
	return all
}

// ListedPrice is the price history of what has none: what its cloud lists it at, since then.
func ListedPrice(listed []drover.Offering, of Candidate, since drover.Time) ([]PricePoint, error) {
	for _, o := range listed {
		if of.Same(Candidate{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market}) {
			return []PricePoint{{From: since, Price: o.Price}}, nil
		}
	}
	return nil, drover.Errorf(drover.KindNotFound, "there is no %s in %s, %s", of.ProviderType, of.Zone, of.Market)
}

// SortOfferings brings offerings into the order in which they are told: by type, zone and market.
func SortOfferings(all []drover.Offering) {
	slices.SortFunc(all, func(a, b drover.Offering) int {
		return cmp.Or(cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
	})
}

// Attributes is a Cloud that has metadata of its own, such as a project's, which people write and programs read.
type Attributes interface {
	// Attribute returns the text of an attribute as it is now. KindNotFound if there is none of this name.
	Attribute(ctx context.Context, name string) (string, error)
}

// As finds the first cloud that is a T, such as a [Starter], in c and in what c wraps. What wraps a cloud may be more careful about what it
// can do and adds nothing to it: there is no T unless the innermost cloud is one and, where capabilities tell, says so.
func As[T any](c Cloud) (found T, ok bool) {
	for {
		outer, is := c.(T)
		if is && !ok {
			found, ok = outer, true
		}
		wrapper, wraps := c.(interface{ Unwrap() Cloud })
		if !wraps {
			if !is || !able[T](c) {
				var none T
				return none, false
			}
			return found, ok
		}
		c = wrapper.Unwrap()
	}
}

// able reports whether a cloud can do what a T does, as far as its capabilities tell.
func able[T any](c Cloud) bool {
	switch any((*T)(nil)).(type) {
	case *Starter:
		return c.Capabilities().StopStart
	case *DiskGrower:
		return c.Capabilities().GrowDisk
	case *Describer:
		return c.Capabilities().Describe
	}
	return true
}
