package drover

import "strings"

// NodeGroup is a pool as a Kubernetes cluster's autoscaler sees it: the autoscaler sets the target and names the nodes
// that go.
type NodeGroup struct {
	Name   string      `json:"name"`
	Min    int         `json:"min"`
	Max    int         `json:"max"`
	Target int         `json:"target"`          // what was asked for and not given up; failed nodes count until they are deleted
	Nodes  []GroupNode `json:"nodes"`           // by instance, the failed ones that never had one last
	Offer  *Offering   `json:"offer,omitempty"` // what the next node has at least, at what its cheapest costs; nil while that is not known
	Zone   string      `json:"zone"`
	Reason *Reason     `json:"reason,omitempty"` // why it has not what was asked for
	Gone   bool        `json:"gone,omitempty"`   // it is no longer configured, and its nodes go
}

// NodeState is how far a node has come.
type NodeState string

// The states of a node.
const (
	NodeCreating NodeState = "creating"
	NodeRunning  NodeState = "running"
	NodeDeleting NodeState = "deleting"
)

// GroupNode is an instance of a node group, or the failure of one.
type GroupNode struct {
	ID       string    `json:"id,omitempty"`    // its node's spec.providerID; of one whose cloud has not named it yet, a name that stands for it
	Asked    string    `json:"asked,omitempty"` // the name that stood for it
	State    NodeState `json:"state"`
	Instance int64     `json:"instance,omitempty"` // 0 of a failure before any was asked for
	Name     string    `json:"name,omitempty"`
	Cloud    string    `json:"cloud,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Type     string    `json:"type,omitempty"` // its cloud's name of the instance type
	GPUs     int       `json:"gpus,omitempty"`
	Provider string    `json:"provider_id,omitempty"` // its cloud's id
	Created  Time      `json:"created,omitempty"`
	Joined   bool      `json:"joined,omitempty"`  // its node was ready and lost its startup taint
	Emptied  bool      `json:"emptied,omitempty"` // its pods were evicted, so that it may go
	Overdue  Time      `json:"overdue,omitempty"` // when it is given up unless it has joined
	Leaving  *Reason   `json:"leaving,omitempty"` // why Drover takes it away; nil while it does not
	Taken    bool      `json:"taken,omitempty"`   // its cloud takes it away
	Held     bool      `json:"held,omitempty"`    // an operator keeps it

	Failure *NodeFailure `json:"failure,omitempty"`
}

// NodeFailure is why a node that was asked for could not be had. It counts toward its group's target until it is
// deleted, although its instance may be gone.
type NodeFailure struct {
	Number    int64  `json:"number"`              // counts the group's failures
	Code      string `json:"code"`                // an ErrorKind, or the code of a Reason
	Exhausted bool   `json:"exhausted,omitempty"` // resources were lacking: the autoscaler does well to try another group
	Reason    Reason `json:"reason"`
}

// StartupTaint begins the key of every taint that nodes lose once they can be used. Autoscalers know it, and expect it
// of no template.
const StartupTaint = "startup-taint.cluster-autoscaler.kubernetes.io/"

// GPULabel is the key of a label of nodes with GPUs, and AnyGPU its value: Drover does not know models. While a node
// has it and no GPUs, the autoscaler holds it to be starting.
const (
	GPULabel = "drover/gpu"
	AnyGPU   = "any"
)

// Taint keeps pods that do not tolerate it off a node.
type Taint struct{ Key, Value, Effect string }

// ParseTaint reads a taint as people write it: KEY=VALUE:EFFECT.
func ParseTaint(text string) (t Taint) {
	text, t.Effect, _ = strings.Cut(text, ":")
	t.Key, t.Value, _ = strings.Cut(text, "=")
	return t
}

// NodeGroups are all node groups at a moment. They are shared and never change.
type NodeGroups struct {
	list   []NodeGroup
	byNode map[string]nodeAt
}

type nodeAt struct{ group, node int }

// NewNodeGroups takes groups over, each with the IDs of its nodes.
func NewNodeGroups(list []NodeGroup) *NodeGroups {
	all := &NodeGroups{list: list, byNode: map[string]nodeAt{}}
	for g := range list {
		for n, node := range list[g].Nodes {
			all.byNode[node.ID], all.byNode[node.Asked] = nodeAt{g, n}, nodeAt{g, n}
		}
	}
	delete(all.byNode, "")
	return all
}

// All lists them by name.
func (all *NodeGroups) All() []NodeGroup { return all.list }

// Group is the group of a name; nil if there is none that is configured.
func (all *NodeGroups) Group(name string) *NodeGroup {
	for i := range all.list {
		if all.list[i].Name == name && !all.list[i].Gone {
			return &all.list[i]
		}
	}
	return nil
}

// Find is the node with an ID, or one that had it while it was created, and its group; nil if there is none.
func (all *NodeGroups) Find(id string) (*NodeGroup, *GroupNode) {
	at, ok := all.byNode[id]
	if !ok {
		return nil, nil
	}
	g := &all.list[at.group]
	return g, &g.Nodes[at.node]
}
