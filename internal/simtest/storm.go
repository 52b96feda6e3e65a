package simtest

import (
	"cmp"
	"time"

	"drover"
)

// season is how often a storm may begin.
const season = 5 * time.Minute

// storm is a fault that lasts, in a cloud or only in a zone, type or market of it.
type storm struct {
	fault  Fault
	cloud  *cloud
	zone   string
	typ    string
	market drover.Market
	until  drover.Time
	limit  int // of a quota: how many instances it allows
}

// weather sometimes begins storms.
func (w *World) weather() {
	for _, f := range []Fault{Outage, RateStorm, QuotaStorm, Drought, Reclaiming, Partition} {
		if w.happens(f) {
			w.brew(f)
		}
	}
	for _, cl := range w.clouds {
		if w.happens(PricesMove) {
			cl.prices.move(w)
		}
	}
	if w.age() < w.recipe.Luck.Until {
		w.after(w.within(2*season), w.weather)
	}
}

func (w *World) brew(f Fault) {
	s := storm{fault: f, cloud: pick(w, w.clouds), until: w.now.Add(min(w.within(15*time.Minute), w.recipe.Luck.Until-w.age()))}
	switch f {
	case QuotaStorm:
		s.typ = pick(w, []string{"", "small", "large"})
		s.market = pick(w, []drover.Market{"", drover.OnDemand, drover.Spot})
		for _, v := range s.cloud.vms {
			if s.covers(v.offering) && v.there() {
				s.limit++
			}
		}
		s.limit += w.roll(2)
	case Drought:
		s.zone = pick(w, append([]string{""}, zones...))
		s.typ = pick(w, []string{"", "small", "large"})
		s.market = pick(w, []drover.Market{"", drover.OnDemand, drover.Spot})
	case Reclaiming:
		s.zone, s.market = pick(w, zones), drover.Spot
		s.reclaim()
		return
	case Partition:
		s.partition()
		return
	}
	w.storms = append(w.storms, s)
}

func (s storm) covers(o drover.Offering) bool {
	return o.Cloud == s.cloud.name && cmp.Or(s.zone, o.Zone) == o.Zone && cmp.Or(s.typ, o.Type.Name) == o.Type.Name && cmp.Or(s.market, o.Market) == o.Market
}

// reclaim makes a cloud interrupt the instances that the storm covers, within a minute.
func (s storm) reclaim() {
	w := s.cloud.w
	for _, v := range s.cloud.vms {
		if s.covers(v.offering) {
			w.after(w.within(time.Minute), v.interrupt)
		}
	}
}

// partition makes all instances of a cloud unreachable until it ends.
func (s storm) partition() {
	for _, v := range s.cloud.vms {
		v.hang(s.until)
	}
	s.cloud.cutOff = s.until
}

// rages reports whether a cloud has a storm of a kind.
func (cl *cloud) rages(f Fault) bool {
	for _, s := range cl.w.storms {
		if s.fault == f && s.cloud == cl && cl.w.now < s.until {
			return true
		}
	}
	return false
}

// denied is why an offering is unavailable now; nil if it is available.
func (cl *cloud) denied(o drover.Offering) *drover.Error {
	for _, s := range cl.w.storms {
		switch {
		case s.cloud != cl || cl.w.now >= s.until || !s.covers(o):
		case s.fault == Drought:
			return &drover.Error{Kind: drover.KindCapacity, Scope: s.scope(), Market: s.market, Message: "there is no more of it"}
		case s.fault == QuotaStorm && s.full():
			return &drover.Error{Kind: drover.KindQuota, Scope: s.scope(), Market: s.market, Message: "you may have no more of it"}
		}
	}
	return nil
}

func (s storm) full() bool {
	n := 0
	for _, v := range s.cloud.vms {
		if v.there() && s.covers(v.offering) {
			n++
		}
	}
	return n >= s.limit
}

func (s storm) scope() drover.Scope {
	switch {
	case s.typ != "" && s.fault == QuotaStorm:
		return drover.ScopeQuotaGroup
	case s.typ != "":
		return drover.ScopeType
	case s.zone != "":
		return drover.ScopeZone
	}
	return drover.ScopeAll
}
