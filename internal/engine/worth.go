package engine

import "drover"

// An instance that is used already is not given work that keeps it for far more than another would cost. Nothing is known of how long jobs
// will take, so each is taken to last as long as any other: then an instance with n of them is kept for a share of 1/n longer by one of them,
// and that share of its price is what the job costs there. Elsewhere it costs the price of the cheapest offering that holds it alone, and a
// boot and a wait besides, which count as a quarter. What was rented and is not yet used takes whatever it holds: it was rented for it.

// worth reports whether the group's next job is worth its place on the instance: always, if nothing else may be had for it.
func (e *Engine) worth(g *group, in *instance) bool {
	if !in.Used || g.stuck || e.s.Closing || g.onDemand > 0 && in.Market == drover.OnDemand {
		return true
	}
	alone := e.alone(g)
	if alone == 0 || in.Price <= alone {
		return true
	}
	jobs := in.free.Times(g.key.Shape.Need, in.atOnce(max(1, g.queued)))
	for _, a := range in.load {
		if a.State != drover.AttemptCollecting {
			jobs++
		}
	}
	return in.Price/drover.Money(max(1, jobs)) <= alone+alone/4
}

// alone is the least that an hour costs of what may be rented now and holds one of the group's jobs; 0 if nothing does.
func (e *Engine) alone(g *group) drover.Money {
	if g.priced == e.market {
		return g.alone
	}
	g.priced, g.alone = e.market, 0
	for _, o := range e.rentable() {
		if (g.alone == 0 || o.Price < g.alone) && g.key.Shape.Accepts(o) && e.blockOf(o) == nil {
			g.alone = o.Price
		}
	}
	return g.alone
}

// moved notes that what may be rented, or for how much, is not as it was.
func (e *Engine) moved() { e.market++ }
