// Package kubetest is Kubernetes for tests of node groups: an API server in memory with a scheduler and ReplicaSets, a
// client of any API server, a kubelet, and an autoscaler that calls its cloud provider as the real one does.
//
// The model: the cluster's objects are JSON. After each change, missing replicas are created and the scheduler binds
// the pods that fit, so nothing runs in the background. Only the autoscaler has a loop.
//
// The invariants: a node registers with a bootstrap token whose secret exists and has not expired; a change of an
// object that somebody else has changed meanwhile is refused; a pod whose eviction a disruption budget forbids stays.
package kubetest

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Meta is what every object has.
type Meta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Version     string            `json:"resourceVersion,omitempty"`
	Created     string            `json:"creationTimestamp,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owners      []Owner           `json:"ownerReferences,omitempty"`
}

// Owner is what an object goes with.
type Owner struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Name       string `json:"name,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// Taint keeps pods off a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Condition is something that holds of an object, or does not.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Node is a node.
type Node struct {
	APIVersion string     `json:"apiVersion,omitempty"`
	Kind       string     `json:"kind,omitempty"`
	Meta       Meta       `json:"metadata"`
	Spec       NodeSpec   `json:"spec"`
	Status     NodeStatus `json:"status"`
}

// NodeSpec is what is wanted of a node.
type NodeSpec struct {
	ProviderID    string  `json:"providerID,omitempty"`
	Unschedulable bool    `json:"unschedulable,omitempty"`
	Taints        []Taint `json:"taints,omitempty"`
}

// NodeStatus is what a node has.
type NodeStatus struct {
	Capacity    map[string]string `json:"capacity,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Conditions  []Condition       `json:"conditions,omitempty"`
}

// Ready reports whether the node is.
func (n Node) Ready() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c Condition) bool { return c.Type == "Ready" && c.Status == "True" })
}

// Open reports whether pods that tolerate nothing may be bound to the node.
func (n Node) Open() bool {
	return n.Ready() && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t Taint) bool { return t.Effect != "PreferNoSchedule" })
}

// Pod is a pod.
type Pod struct {
	Meta   Meta      `json:"metadata"`
	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is what is wanted of a pod.
type PodSpec struct {
	Node       string      `json:"nodeName,omitempty"`
	Containers []Container `json:"containers,omitempty"`
}

// Container is one of a pod's.
type Container struct {
	Name      string    `json:"name,omitempty"`
	Image     string    `json:"image,omitempty"`
	Resources Resources `json:"resources"`
}

// Resources are what a container asks for.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
}

// PodStatus is how far a pod has come.
type PodStatus struct {
	Phase      string      `json:"phase,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// CPU is what the pod asks for, in thousandths.
func (p Pod) CPU() (all int) {
	for _, c := range p.Spec.Containers {
		all += milli(c.Resources.Requests["cpu"])
	}
	return all
}

// ReplicaSet keeps so many pods of one kind.
type ReplicaSet struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Meta       Meta           `json:"metadata"`
	Spec       ReplicaSetSpec `json:"spec"`
}

// ReplicaSetSpec is what is wanted of a ReplicaSet.
type ReplicaSetSpec struct {
	Replicas int         `json:"replicas"`
	Selector Selector    `json:"selector"`
	Template PodTemplate `json:"template"`
}

// Selector chooses objects by their labels.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// PodTemplate is what the pods of a ReplicaSet are made of.
type PodTemplate struct {
	Meta Meta    `json:"metadata"`
	Spec PodSpec `json:"spec"`
}

// Replicas are so many pods that ask for this much CPU each.
func Replicas(name string, count int, cpu string) ReplicaSet {
	labels := map[string]string{"app": name}
	return ReplicaSet{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Meta: Meta{Name: name, Namespace: "default"},
		Spec: ReplicaSetSpec{Replicas: count, Selector: Selector{labels}, Template: PodTemplate{
			Meta: Meta{Labels: labels},
			Spec: PodSpec{Containers: []Container{{Name: "work", Image: "none", Resources: Resources{map[string]string{"cpu": cpu}}}}},
		}},
	}
}

// Secret is a secret.
type Secret struct {
	Meta Meta              `json:"metadata"`
	Type string            `json:"type,omitempty"`
	Data map[string]string `json:"stringData,omitempty"`
}

// units are those of quantities that occur here.
var units = map[string]float64{"m": 1e-3, "": 1, "Mi": 1 << 20, "Gi": 1 << 30}

// Quantity reads a quantity, such as 500m or 32Gi. One that cannot be read is 0.
func Quantity(text string) float64 {
	number := strings.TrimRight(text, "mMGi")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return n * units[text[len(number):]]
}

// milli reads a quantity in thousandths.
func milli(text string) int { return int(math.Round(1000 * Quantity(text))) }

// List is what a list call answers.
type List[T any] struct {
	Items []T `json:"items"`
}

// matches reports whether labels have all that is selected by.
func matches(labels map[string]string, selector string) bool {
	for pair := range strings.SplitSeq(selector, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if key != "" && labels[key] != value {
			return false
		}
	}
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
