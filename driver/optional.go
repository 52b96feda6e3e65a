package driver

import (
	"cmp"
	"context"
	"slices"

	"drover"
)

// The optional interfaces, for abilities that only some clouds have. As finds them through all decorators of a cloud.

// Starter is a Cloud that can stop instances and start them again, with their volumes, tags and host keys; their
// addresses may change. Both methods return once the cloud has accepted the request; repeating a call succeeds.
// KindNotFound if there is no such instance, KindUnsupported if this one cannot be stopped, like EC2's spot instances.
// Start fails as Create does: the cloud may have no capacity left.
type Starter interface {
	Stop(ctx context.Context, id string) error
	Start(ctx context.Context, id string) error
}

// Describer is a Cloud that can look up one instance by its id, as a second opinion on a list that may lag.
type Describer interface {
	// Describe returns the instance with this id as List would, whatever its tags. This includes a stopped one, and one
	// that the cloud took back for as long as List shows it as Reclaimed. KindNotFound if there is none, or if the
	// cloud still shows one that has ended permanently. Only a definite answer of the cloud is KindNotFound: an unclear
	// answer is KindTransient. A new instance may be KindNotFound for as long as Capabilities.ListLag. With
	// KindNotFound only the instance's Ended is set, if the cloud reports it.
	Describe(ctx context.Context, id string) (Instance, error)
}

// DiskGrower is a Cloud that enlarges the root volume of a running instance and keeps its contents.
type DiskGrower interface {
	// GrowDisk enlarges the volume to the size, if it is smaller; repeating a call succeeds. It returns once the cloud
	// has accepted the request; the instance may see the new size later. KindNotFound if there is no such instance,
	// KindUnsupported if its volume cannot grow. A KindTransient call may have taken effect.
	GrowDisk(ctx context.Context, id string, size drover.Bytes) error
}

// Image is something that instances boot from.
type Image struct {
	ID      string // as in Candidate.Image
	Name    string
	Arch    drover.Arch // empty: any
	Created drover.Time
}

// ImageFinder is a Cloud that finds images by name as well as by id.
type ImageFinder interface {
	// FindImages lists the images that ref may mean: the one with this id, else those whose names match it, where *
	// matches any text. It may include other architectures. An empty list is no error.
	FindImages(ctx context.Context, ref string, arch drover.Arch) ([]Image, error)
}

// PricePoint is one step of an offering's price history: the hourly price from a time on.
type PricePoint struct {
	From  drover.Time
	Price drover.Money
}

// PriceHistorian is a Cloud with a price history.
type PriceHistorian interface {
	// PriceHistory lists an offering's prices since a time, as SortPrices sorts them: newest first, each change once.
	// They include what Offerings' prices include.
	PriceHistory(ctx context.Context, providerType, zone string, m drover.Market, since drover.Time) ([]PricePoint, error)
}

// SortPrices sorts a price history, newest first, and removes steps that change nothing. Of two prices from the same
// time, the higher one counts.
func SortPrices(points []PricePoint) []PricePoint {
	all := slices.Clone(points)
	slices.SortFunc(all, func(a, b PricePoint) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.Price, a.Price)) })
	all = slices.CompactFunc(all, func(a, b PricePoint) bool { return a.From == b.From })
	all = slices.CompactFunc(all, func(a, b PricePoint) bool { return a.Price == b.Price })
	slices.Reverse(all)
	return all
}

// PricesSince cuts a history that SortPrices sorted to the price at a time, and the later ones.
func PricesSince(all []PricePoint, since drover.Time) []PricePoint {
	if at := slices.IndexFunc(all, func(p PricePoint) bool { return p.From <= since }); at >= 0 {
		return all[:at+1]
	}
	return all
}

// ListedPrice returns a price history for a cloud that has none: the offering's listed price, since the given time.
func ListedPrice(ctx context.Context, c Cloud, of Candidate, since drover.Time) ([]PricePoint, error) {
	listed, err := c.Offerings(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range listed {
		if of.Same(Candidate{ProviderType: o.Type.ProviderType, Zone: o.Zone, Market: o.Market}) {
			return []PricePoint{{From: since, Price: o.Price}}, nil
		}
	}
	return nil, drover.Errorf(drover.KindNotFound, "there is no %s in %s (%s)", of.ProviderType, of.Zone, of.Market)
}

// SortOfferings sorts offerings by type, zone and market.
func SortOfferings(all []drover.Offering) {
	slices.SortFunc(all, func(a, b drover.Offering) int {
		return cmp.Or(cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
	})
}

// Attributes is a Cloud with its own metadata, such as a project's, which people write and programs read.
type Attributes interface {
	// Attribute returns the current text of an attribute. KindNotFound if there is none of this name.
	Attribute(ctx context.Context, name string) (string, error)
}

// As finds the outermost T, such as a [Starter], in c and in the clouds that c wraps. A decorator may restrict an
// ability but adds none: there is a T only if the innermost cloud is one and its capabilities, where they cover T,
// include it.
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

// able reports whether a cloud is a T, as far as its capabilities tell.
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
