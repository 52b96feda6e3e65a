package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// pool reads "NAME size=3 zones=a,b types=small template=t2 max-surge=1 jobs login=none": the pool's configuration from
// now on. It replaces a pool of the same name; "NAME gone" removes the pool.
func (p *player) pool(args []string) {
	s := pool.Spec{
		Name: args[0], Clouds: []string{"c"}, Market: drover.OnDemand, Spread: drover.SpreadBalanced, Login: drover.LoginSSH,
		Template: "t1", MaxUnavailable: 1, MaxSurge: 1, Cooldown: p.duration("2m"),
	}
	for key, value := range pairs(args[1:]) {
		switch key {
		case "join":
			s.JoinTimeout, p.settings.Nodes = p.duration(value), true
		case "size", "floor", "spare", "group":
			s.Kind, s.Count = drover.PoolKind(key), int(p.number(value))
		case "budget":
			s.Budget, _ = drover.ParseMoney(value)
		case "check":
			s.CheckWithin = p.duration(value)
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
		case "ratio":
			s.Ratio = int(p.number(value)) * 100
		case "stopped":
			s.Stopped = int(p.number(value))
		case "prefix":
			s.NamePrefix = value
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

// pools prints the state of each pool.
func (p *player) pools() {
	for _, one := range p.e.Pools() {
		zones := []string{}
		for _, z := range slices.Sorted(maps.Keys(one.ByZone)) {
			zones = append(zones, fmt.Sprintf("%s %d", z, one.ByZone[z]))
		}
		ready := fmt.Sprint(one.Ready, " ready")
		if one.Kind == drover.PoolSpare {
			ready += fmt.Sprintf(" (%d idle)", one.Idle)
		}
		p.print("%s: %s %d; %d count, %s, %d outdated, %d leave [%s]", one.Name, one.Kind, one.Wanted, one.Instances, ready, one.Outdated, one.Leaving, strings.Join(zones, ", "))
		if one.Keeps+one.Stopped+one.Lent > 0 {
			p.print("  %d stopped of %d, %d lent", one.Stopped, one.Keeps, one.Lent)
		}
		if one.Reason != nil {
			p.print("  %s: %s; since %s, until %s", one.Reason.Code, one.Reason.Text, p.ago(one.Reason.Since), p.ago(one.Reason.Until))
		}
	}
}

// known completes a sighting of a pool's known instance.
func (p *player) known(s *engine.Sighting) {
	for _, in := range p.e.Instances() {
		if in.Name == s.Name && in.Pool != "" {
			s.Zone, s.ProviderType, s.Type, s.Market, s.Price, s.Pool, s.Template = in.Zone, in.Type.ProviderType, in.Type.Name, in.Market, in.Price, in.Pool, in.Template
		}
	}
}

// inPool describes the pool and zone an instance is created for.
func inPool(c engine.Create) string {
	if c.Pool == "" {
		return ""
	}
	name := ""
	if c.Prefix != "" {
		name = " as " + c.Prefix + "…"
	}
	return fmt.Sprintf(" in %s for %s%s", c.Candidates[0].Zone, c.Pool, name)
}

// group reads "NAME increase 3", "NAME decrease 1" or "NAME delete 1 2 f1", where f1 is a failure; with "late", nobody
// waits for the answer any more, and with "before", an earlier controller was asked just now.
func (p *player) group(args []string) engine.GroupAsked {
	b := engine.GroupAsked{Wish: 1, Group: args[0], Verb: engine.GroupVerb(args[1]), Asked: p.now, Reason: drover.Reason{Code: drover.ReasonScaledDown, Text: "the autoscaler deleted it"}}
	for _, arg := range args[2:] {
		failure, failed := strings.CutPrefix(arg, "f")
		switch {
		case arg == "late":
			b.Asked = p.now.Add(-2*time.Second) - 1
		case arg == "before":
			b.Asked = p.now - 1
		case b.Verb == engine.GroupDecrease:
			b.Delta = -int(p.number(arg))
		case b.Verb == engine.GroupIncrease:
			b.Delta = int(p.number(arg))
		case failed:
			b.Nodes = append(b.Nodes, engine.NodeKey{Failure: p.number(failure)})
		default:
			b.Nodes = append(b.Nodes, engine.NodeKey{Instance: p.number(arg)})
		}
	}
	return b
}

// groups prints what an autoscaler sees.
func (p *player) groups() {
	for _, g := range p.e.NodeGroups() {
		p.print("%s in %s: target %d of %d", g.Name, g.Zone, g.Target, g.Max)
		if o := g.Offer; o != nil && o.Type.Resources.Arch != "amd64" {
			p.print("  for %s", cmp.Or(o.Type.Resources.Arch, "any architecture"))
		}
		for _, n := range g.Nodes {
			text := fmt.Sprintf("%s %s", cmp.Or(n.Name, "nothing"), n.State)
			if n.Joined {
				text += ", joined"
			}
			if f := n.Failure; f != nil {
				text += fmt.Sprintf(", failure %d: %s, exhausted %t: %s", f.Number, f.Code, f.Exhausted, f.Reason.Text)
			}
			if n.Leaving != nil {
				text += ", leaves: " + n.Leaving.Text
			}
			p.print("  %s", text)
		}
	}
}

// shownGroups is what callers that compare revisions know of node groups and health checks.
type shownGroups struct {
	e        *engine.Engine
	revision engine.GroupRevision
	groups   []drover.NodeGroup
	checks   []engine.Check
}

// checkRevision checks that node groups and health checks change only with their revision, but for times.
func (p *player) checkRevision() {
	was, now := p.shown, shownGroups{p.e, p.e.GroupRevision(), p.e.NodeGroups(), p.e.Checks()}
	timeless := func(r *drover.Reason) *drover.Reason {
		if r == nil {
			return nil
		}
		return &drover.Reason{Code: r.Code, Text: r.Text}
	}
	for i := range now.groups {
		g := &now.groups[i]
		g.Reason = timeless(g.Reason)
		for n := range g.Nodes {
			g.Nodes[n].Leaving = timeless(g.Nodes[n].Leaving)
		}
	}
	if was.e == now.e && was.revision == now.revision && !reflect.DeepEqual(was, now) {
		p.t.Errorf("the node groups or health checks changed without their revision: were %+v %+v, are %+v %+v", was.groups, was.checks, now.groups, now.checks)
	}
	p.shown = now
}
