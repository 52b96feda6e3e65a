package control

import (
	"context"
	"slices"
	"testing"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// priced is a cloud whose offerings a test sets.
type priced struct {
	driver.Cloud
	offers []drover.Offering
}

func (p *priced) Offerings(context.Context) ([]drover.Offering, error) {
	return slices.Clone(p.offers), nil
}

func TestTheEngineGetsOnlyTheChangesOfACatalogue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cloud := &priced{Cloud: f.cfg.Clouds[0].Driver}
	offer := func(name string, price drover.Money) drover.Offering {
		return drover.Offering{Cloud: "here", Type: drover.InstanceType{Name: name}, Market: drover.OnDemand, Price: price}
	}
	f.cfg.Clouds[0].Driver = cloud
	f.cfg.Clouds[0].Offer = func(o drover.Offering) (drover.Offering, string) {
		o.Price /= 2
		if o.Price > 10 {
			return o, "it is too dear"
		}
		return o, ""
	}
	c := must(New(t.Context(), f.cfg))(t)
	ask := func(have string) engine.Offered {
		return c.offerings(t.Context(), 1, engine.ListOfferings{Cloud: "here", Have: have}).(engine.Offered)
	}

	cloud.offers = []drover.Offering{offer("b", 4), offer("a", 2), offer("dear", 30)}
	first := ask("")
	if want := []drover.Offering{offer("a", 1), offer("b", 2)}; !slices.Equal(first.Offerings, want) || first.Base != "" || first.Hash == "" {
		t.Errorf("got %+v, want all usable offerings, sorted, at the prices paid: %+v", first, want)
	}
	if left := c.leftOut(); len(left) != 1 || left[0].Type.Name != "dear" || left[0].Why != "it is too dear" {
		t.Errorf("left out: %+v", left)
	}
	if same := ask(first.Hash); len(same.Offerings)+len(same.Removed) > 0 || same.Base != first.Hash || same.Hash != first.Hash {
		t.Errorf("nothing has changed, but the answer is %+v", same)
	}
	cloud.offers = []drover.Offering{offer("b", 6), offer("c", 8)}
	moved := ask(first.Hash)
	if want := []drover.Offering{offer("b", 3), offer("c", 4)}; !slices.Equal(moved.Offerings, want) || len(moved.Removed) != 1 || moved.Removed[0].Type != "a" {
		t.Errorf("got %+v, want %+v and the removal of a", moved, want)
	}
	if whole := ask(first.Hash); whole.Base != "" || len(whole.Offerings) != 2 {
		t.Errorf("for an outdated catalogue the answer is %+v, want all offerings", whole)
	}
}
