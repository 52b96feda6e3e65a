package drover

import "strings"

// NodeGroup is a pool as a Kubernetes cluster's autoscaler sees it: the autoscaler sets the target and chooses the
// nodes to delete.
type NodeGroup struct {
	Name   string      `json:"name"`
	Min    int         `json:"min"`
	Max    int         `json:"max"`
	Target int         `json:"target"`          // the number of nodes requested and not given up; failed nodes count until they are deleted
	Nodes  []GroupNode `json:"nodes"`           // by instance; failed ones without an instance are last
	Offer  *Offering   `json:"offer,omitempty"` // the least that the next node has, at the lowest price; nil: not known
	Zone   string      `json:"zone"`
	Reason *Reason     `json:"reason,omitempty"` // why nodes are missing
	Gone   bool        `json:"gone,omitempty"`   // it is no longer configured, and its nodes are being removed
}

// NodeState is where a node is in its life.
type NodeState string

// The states of a node.
const (
	NodeCreating NodeState = "creating"
	NodeRunning  NodeState = "running"
	NodeDeleting NodeState = "deleting"
)

// GroupNode is an instance of a node group, or a request for one that failed.
type GroupNode struct {
	ID       string    `json:"id,omitempty"`    // its node's spec.providerID, or a placeholder until its cloud has named it
	Asked    string    `json:"asked,omitempty"` // that placeholder
	State    NodeState `json:"state"`
	Instance int64     `json:"instance,omitempty"` // 0 for a failure before any was requested
	Name     string    `json:"name,omitempty"`
	Cloud    string    `json:"cloud,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Type     string    `json:"type,omitempty"` // its cloud's name for the instance type
	GPUs     int       `json:"gpus,omitempty"`
	Provider string    `json:"provider_id,omitempty"` // its cloud's id
	Created  Time      `json:"created,omitempty"`
	Joined   bool      `json:"joined,omitempty"`  // its node was ready and lost its startup taint
	Emptied  bool      `json:"emptied,omitempty"` // its pods were evicted, so it can be deleted
	Overdue  Time      `json:"overdue,omitempty"` // it is given up then, unless it has joined
	Leaving  *Reason   `json:"leaving,omitempty"` // why Drover removes it; nil if it does not
	Taken    bool      `json:"taken,omitempty"`   // its cloud is taking it back
	Held     bool      `json:"held,omitempty"`    // an operator keeps it

	Failure *NodeFailure `json:"failure,omitempty"`
}

// NodeFailure is why a requested node could not be provided. It counts toward its group's target until it is deleted,
// even if its instance is gone.
type NodeFailure struct {
	Number    int64  `json:"number"`              // numbers the group's failures
	Code      string `json:"code"`                // an ErrorKind, or the code of a Reason
	Exhausted bool   `json:"exhausted,omitempty"` // resources were lacking: the autoscaler should try another group
	Reason    Reason `json:"reason"`
}

// StartupTaint is the prefix of the keys of all taints that nodes lose once they are usable. Autoscalers recognize it,
// and do not expect these taints in a template.
const StartupTaint = "startup-taint.cluster-autoscaler.kubernetes.io/"

// GPULabel is the key of a label on nodes with GPUs, and AnyGPU is its value, since Drover does not distinguish models.
// While a node has the label but no GPUs, the autoscaler considers it starting.
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

// NodeGroups is an immutable snapshot of all node groups. It is shared.
type NodeGroups struct {
	list   []NodeGroup
	byNode map[string]nodeAt
}

type nodeAt struct{ group, node int }

// NewNodeGroups takes ownership of groups and indexes them by the IDs of their nodes.
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

// Group returns the configured group with this name, or nil.
func (all *NodeGroups) Group(name string) *NodeGroup {
	for i := range all.list {
		if all.list[i].Name == name && !all.list[i].Gone {
			return &all.list[i]
		}
	}
	return nil
}

// Find returns the node with this ID or former placeholder, and its group; nil if there is none.
func (all *NodeGroups) Find(id string) (*NodeGroup, *GroupNode) {
	at, ok := all.byNode[id]
	if !ok {
		return nil, nil
	}
	g := &all.list[at.group]
	return g, &g.Nodes[at.node]
}
