package control

import (
	"context"
	"slices"

	"drover"
	"drover/driver"
	"drover/internal/engine"
	"drover/internal/logkey"
)

const (
	mostPast  = 100  // offerings whose history is requested, each in its own call
	mostSteps = 1000 // kept for each: the latest
)

// priceHistory returns how the prices of a cloud's spot instances have changed since the engine's last known change, if
// the cloud keeps a history; listed are its offerings. Instances without available history keep their price.
func (c *Controller) priceHistory(ctx context.Context, cl *cloud, listed []drover.Offering) (all []engine.Past) {
	historian, remembers := driver.As[driver.PriceHistorian](cl.own)
	if !remembers {
		return nil
	}
	var there []engine.Instance
	if err := c.Query(ctx, func(e *engine.Engine) { there = spotIn(e, cl.Name) }); err != nil {
		return nil
	}
	for _, in := range there[:min(len(there), mostPast)] {
		points, err := historian.PriceHistory(ctx, in.Type.ProviderType, in.Zone, in.Market, in.PricedSince())
		if err != nil {
			c.cfg.Log.Warn("prices from the time when no controller ran cannot be read, so the last known price is used", logkey.Cloud, cl.Name, logkey.Error, err)
			return all
		}
		all = append(all, engine.Past{OfferingKey: keyOf(in), Prices: cl.asPaid(likeIt(in, listed), points)})
	}
	return all
}

// leftOutPrices returns the current prices of a cloud's spot instances whose offerings the configuration excludes, for
// example since they cost more than types.max_price now. They run on, and the catalogue does not have their prices.
func (c *Controller) leftOutPrices(ctx context.Context, cloud string, leftOut []drover.LeftOut) (all []engine.Past) {
	if !slices.ContainsFunc(leftOut, func(o drover.LeftOut) bool { return o.Market == drover.Spot }) {
		return nil
	}
	now, there := c.clock.now(), []engine.Instance(nil)
	if err := c.Query(ctx, func(e *engine.Engine) { there = spotIn(e, cloud) }); err != nil {
		return nil
	}
	for _, in := range there {
		at := slices.IndexFunc(leftOut, func(o drover.LeftOut) bool { return engine.KeyOf(o.Offering) == keyOf(in) })
		if at >= 0 {
			all = append(all, engine.Past{OfferingKey: keyOf(in), Prices: []engine.PastPrice{{From: now, Price: leftOut[at].Price}}})
		}
	}
	return all
}

// spotIn returns, for each spot offering of a cloud, the instance whose price has been unchanged for longest.
func spotIn(e *engine.Engine, cloud string) (oldest []engine.Instance) {
	for _, in := range e.Instances() {
		if in.Cloud != cloud || in.Market != drover.Spot || !in.Billed() {
			continue
		}
		at := slices.IndexFunc(oldest, func(o engine.Instance) bool { return keyOf(o) == keyOf(in) })
		switch {
		case at < 0:
			oldest = append(oldest, in)
		case in.PricedSince() < oldest[at].PricedSince():
			oldest[at] = in
		}
	}
	return oldest
}

func keyOf(in engine.Instance) engine.OfferingKey {
	return engine.OfferingKey{Type: in.Type.Name, Zone: in.Zone, Market: in.Market}
}

// likeIt returns an instance's offering from its cloud's list, or a substitute without a price if the list lacks it.
func likeIt(in engine.Instance, listed []drover.Offering) drover.Offering {
	at := slices.IndexFunc(listed, func(o drover.Offering) bool {
		return o.Type.Name == in.Type.Name && o.Zone == in.Zone && o.Market == in.Market
	})
	if at < 0 {
		return drover.Offering{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type, Market: in.Market}
	}
	return listed[at]
}

// asPaid returns an offering's price history (given newest first) as it is paid, with each instance's volume, oldest
// first.
func (cl *cloud) asPaid(o drover.Offering, points []driver.PricePoint) (prices []engine.PastPrice) {
	for _, p := range points[:min(len(points), mostSteps)] {
		o := o
		o.Price = p.Price
		if cl.Offer != nil {
			o, _ = cl.Offer(o)
		}
		prices = append(prices, engine.PastPrice{From: p.From, Price: o.Price})
	}
	slices.Reverse(prices)
	return prices
}
