package config

import "testing"

func TestOnlyWhatANodeIsCreatedWithIsItsTemplate(t *testing.T) {
	group := func(change func(*NodeGroup)) string {
		g := &NodeGroup{Max: 3, Labels: map[string]string{"tier": "batch"}}
		change(g)
		return Pool{Kubernetes: g}.TemplateHash()
	}
	before := group(func(*NodeGroup) {})
	for name, change := range map[string]func(*NodeGroup){
		"min": func(g *NodeGroup) { g.Min = 1 }, "max": func(g *NodeGroup) { g.Max = 9 }, "budget": func(g *NodeGroup) { g.Budget = 5e9 },
		"reserved": func(g *NodeGroup) { g.Reserved.Memory = 1 << 30 },
	} {
		if group(change) != before {
			t.Errorf("another %s would replace all nodes of the group", name)
		}
	}
	for name, change := range map[string]func(*NodeGroup){
		"label": func(g *NodeGroup) { g.Labels = nil }, "taint": func(g *NodeGroup) { g.Taints = []Taint{"a:NoSchedule"} }, "join": func(g *NodeGroup) { g.Join.Text = "#!/bin/sh" },
	} {
		if group(change) == before {
			t.Errorf("another %s would not reach the nodes of the group", name)
		}
	}
}
