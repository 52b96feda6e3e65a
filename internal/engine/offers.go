package engine

import (
	"drover"
	"drover/internal/engine/market"
)

// OfferState is an offering and, if none of it is rented now, why not and until when: the first of the reasons that ExplainOfferings gives, which also says
// since when.
type OfferState struct {
	drover.Offering
	Why *drover.Reason
}

// Offers lists what could be rented, by cloud, type, zone and market. The values share no memory with the engine.
func (e *Engine) Offers() []OfferState {
	all := e.market.Offerings()
	list := make([]OfferState, len(all))
	bars := e.obstacles()
	for i, o := range all {
		list[i] = OfferState{e.asPaid(o), told(bars.of(o))}
	}
	return list
}

// obstacles are what keeps offerings from being rented, found with one look at each instance.
type obstacles struct {
	e      *Engine
	clouds map[string][]Verdict // what bars all of one
	left   market.Limits
	spread drover.Problem
}

func (e *Engine) obstacles() *obstacles {
	b := &obstacles{e: e, clouds: map[string][]Verdict{}, left: e.limitsLeft()}
	for _, c := range e.clouds {
		b.clouds[c.Name] = e.whyNotIn(c)
	}
	e.spread(&b.spread)
	return b
}

// of is the first obstacle in the way of an offering; nil if there is none.
func (b *obstacles) of(o drover.Offering) *Verdict {
	if block := b.e.market.BlockOf(o); block != nil {
		why := block.Reason
		why.Text, why.Until = blockText(*block), later(why.Until, b.e.s.Now)
		return &why
	}
	if all := b.clouds[o.Cloud]; len(all) > 0 {
		return &all[0]
	}
	if why, l := b.e.passedBy(b.left, o); l != nil {
		return &why
	}
	if why, a := b.e.tooDearFor(o); a != nil {
		return &why
	}
	if why, has := b.e.spreads(b.spread, o); has {
		return &why
	}
	return nil
}
