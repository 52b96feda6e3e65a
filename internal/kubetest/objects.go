// Package kubetest is Kubernetes for tests of node groups: an API server in memory with a scheduler and ReplicaSets, a
// client of any API server, a kubelet, and an autoscaler that calls its cloud provider as the real one does.
//
// The model: the cluster's objects are JSON. After each change, missing replicas are created and the scheduler binds
// the pods that fit, so nothing runs in the background. Only the autoscaler has a loop.
//
// The invariants: a node registers only with a bootstrap token whose secret exists and has not expired; a change of an
// object that somebody else has changed meanwhile is rejected; a pod stays if a disruption budget forbids its eviction.
package kubetest

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Meta is the metadata of every object.
type Meta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Version     string            `json:"resourceVersion,omitempty"`
	Created     string            `json:"creationTimestamp,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Owners      []Owner           `json:"ownerReferences,omitempty"`
}

// Owner is the owner of an object.
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

// Condition is a condition of an object, which holds or not.
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

// NodeSpec is a node's desired state.
type NodeSpec struct {
	ProviderID    string  `json:"providerID,omitempty"`
	Unschedulable bool    `json:"unschedulable,omitempty"`
	Taints        []Taint `json:"taints,omitempty"`
}

// NodeStatus is a node's actual state.
type NodeStatus struct {
	Capacity    map[string]string `json:"capacity,omitempty"`
	Allocatable map[string]string `json:"allocatable,omitempty"`
	Conditions  []Condition       `json:"conditions,omitempty"`
}

// Ready reports whether the node is ready.
func (n Node) Ready() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c Condition) bool { return c.Type == "Ready" && c.Status == "True" })
}

// Open reports whether pods without tolerations may be bound to the node.
func (n Node) Open() bool {
	return n.Ready() && !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t Taint) bool { return t.Effect != "PreferNoSchedule" })
}

// Pod is a pod.
type Pod struct {
	Meta   Meta      `json:"metadata"`
	Spec   PodSpec   `json:"spec"`
	Status PodStatus `json:"status"`
}

// PodSpec is a pod's desired state.
type PodSpec struct {
	Node       string      `json:"nodeName,omitempty"`
	Containers []Container `json:"containers,omitempty"`
}

// Container is one of a pod's containers.
type Container struct {
	Name      string    `json:"name,omitempty"`
	Image     string    `json:"image,omitempty"`
	Resources Resources `json:"resources"`
}

// Resources are a container's requests.
type Resources struct {
	Requests map[string]string `json:"requests,omitempty"`
}

// PodStatus is a pod's actual state.
type PodStatus struct {
	Phase      string      `json:"phase,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// CPU is the pod's CPU request, in thousandths.
func (p Pod) CPU() (all int) {
	for _, c := range p.Spec.Containers {
		all += milli(c.Resources.Requests["cpu"])
	}
	return all
}

// ReplicaSet keeps a number of equal pods.
type ReplicaSet struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Meta       Meta           `json:"metadata"`
	Spec       ReplicaSetSpec `json:"spec"`
}

// ReplicaSetSpec is a ReplicaSet's desired state.
type ReplicaSetSpec struct {
	Replicas int         `json:"replicas"`
	Selector Selector    `json:"selector"`
	Template PodTemplate `json:"template"`
}

// Selector chooses objects by their labels.
type Selector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// PodTemplate is the template of a ReplicaSet's pods.
type PodTemplate struct {
	Meta Meta    `json:"metadata"`
	Spec PodSpec `json:"spec"`
}

// Replicas returns a ReplicaSet of count pods that each request this much CPU.
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

// units are the units of the quantities used here.
var units = map[string]float64{"m": 1e-3, "": 1, "Mi": 1 << 20, "Gi": 1 << 30}

// Quantity parses a quantity, such as 500m or 32Gi. It returns 0 for an invalid one.
func Quantity(text string) float64 {
	number := strings.TrimRight(text, "mMGi")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return n * units[text[len(number):]]
}

// milli parses a quantity in thousandths.
func milli(text string) int { return int(math.Round(1000 * Quantity(text))) }

// List is the response to a list call.
type List[T any] struct {
	Kind  string `json:"kind"`
	Items []T    `json:"items"`
}

// matches reports whether labels match a selector.
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
