package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// pool reads "NAME size=3 zones=a,b types=small template=t2 max-surge=1 jobs login=none": a pool as it is configured from now on. One of a name
// that there is takes its place; "NAME gone" takes it out.
func (p *player) pool(args []string) {
	s := pool.Spec{
		Name: args[0], Clouds: []string{"c"}, Market: drover.OnDemand, Spread: drover.SpreadBalanced, Login: drover.LoginSSH,
		Template: "t1", MaxUnavailable: 1, MaxSurge: 1, Cooldown: p.duration("2m"),
	}
	for key, value := range pairs(args[1:]) {
		switch key {
		case "size", "floor", "spare":
			s.Kind, s.Count = drover.PoolKind(key), int(p.number(value))
		case "max":
			s.Max = int(p.number(value))
		case "clouds":
			s.Clouds = strings.Split(value, ",")
		case "zones":
			s.Zones = strings.Split(value, ",")
		case "types":
			s.Types = strings.Split(value, ",")
		case "template":
			s.Template = value
		case "cheapest":
			s.Spread = drover.SpreadCheapest
		case "rebalance":
			s.Rebalance = true
		case "jobs":
			s.Jobs = true
		case "login":
			s.Login = drover.PoolLogin(value)
		case "max-age":
			s.MaxAge = p.duration(value)
		case "surge":
			s.MaxSurge = int(p.number(value))
		case "unavailable":
			s.MaxUnavailable = int(p.number(value))
		case "gone":
		default:
			p.t.Fatalf("no such key of a pool: %s", key)
		}
	}
	all := slices.DeleteFunc(slices.Clone(p.settings.Pools), func(o pool.Spec) bool { return o.Name == s.Name })
	if s.Kind != "" {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b pool.Spec) int { return cmp.Compare(a.Name, b.Name) })
	p.settings.Pools = all
}

// pools prints what there is of each.
func (p *player) pools() {
	for _, one := range p.e.Pools() {
		zones := []string{}
		for _, z := range slices.Sorted(maps.Keys(one.ByZone)) {
			zones = append(zones, fmt.Sprintf("%s %d", z, one.ByZone[z]))
		}
		p.print("%s: %s %d; %d count, %d ready, %d outdated, %d leave [%s]", one.Name, one.Kind, one.Wanted, one.Instances, one.Ready, one.Outdated, one.Leaving, strings.Join(zones, ", "))
		if one.Reason != nil {
			p.print("  %s: %s; since %s, until %s", one.Reason.Code, one.Reason.Text, p.ago(one.Reason.Since), p.ago(one.Reason.Until))
		}
	}
}

// known is what a list shows of an instance of a pool that the engine knows.
func (p *player) known(s *engine.Sighting) {
	for _, in := range p.e.Instances() {
		if in.Name == s.Name && in.Pool != "" {
			s.Zone, s.ProviderType, s.Type, s.Market, s.Price, s.Pool, s.Template = in.Zone, in.Type.ProviderType, in.Type.Name, in.Market, in.Price, in.Pool, in.Template
		}
	}
}

// inPool says for which pool, and where, an instance is created.
func inPool(c engine.Create) string {
	if c.Pool == "" {
		return ""
	}
	return fmt.Sprintf(" in %s for %s", c.Candidates[0].Zone, c.Pool)
}
