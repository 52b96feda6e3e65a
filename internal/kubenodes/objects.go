package kubenodes

import (
	"slices"
	"time"
)

// The fields of Kubernetes objects that this package reads or writes.

type meta struct {
	Name        string            `json:"name,omitempty"`
	Namespace   string            `json:"namespace,omitempty"`
	Version     string            `json:"resourceVersion,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Deleted     string            `json:"deletionTimestamp,omitempty"`
	Owners      []owner           `json:"ownerReferences,omitempty"`
}

type owner struct {
	Kind string `json:"kind"`
}

type taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	Added  string `json:"timeAdded,omitempty"`
}

type node struct {
	Meta meta `json:"metadata"`
	Spec struct {
		ProviderID    string  `json:"providerID,omitempty"`
		Unschedulable bool    `json:"unschedulable,omitempty"`
		Taints        []taint `json:"taints,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions,omitempty"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// works reports whether the node is ready and its network works; if not, why is what the node says about that, after a
// colon, or empty.
func (n *node) works() (yes bool, why string) {
	broken := false
	for _, c := range n.Status.Conditions {
		yes = yes || c.Type == "Ready"
		if c.Type == "Ready" && c.Status != "True" || c.Type == "NetworkUnavailable" && c.Status == "True" {
			if broken = true; c.Message != "" {
				why = ": " + c.Message
			}
		}
	}
	return yes && !broken, why
}

type pod struct {
	Meta meta `json:"metadata"`
	Spec struct {
		Node    string           `json:"nodeName,omitempty"`
		Volumes []map[string]any `json:"volumes,omitempty"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status"`
}

// stays reports whether the pod need not be evicted: it belongs to its node, or has ended.
func (p *pod) stays() bool {
	_, mirror := p.Meta.Annotations["kubernetes.io/config.mirror"]
	owned := slices.ContainsFunc(p.Meta.Owners, func(o owner) bool { return o.Kind == "DaemonSet" || o.Kind == "Node" })
	return mirror || owned || p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed"
}

// stuck reports whether the pod should have terminated more than a minute ago. Its deletion time includes its grace period.
func (p *pod) stuck() bool {
	due, err := time.Parse(time.RFC3339, p.Meta.Deleted)
	return err == nil && time.Since(due) > time.Minute
}

// local reports whether the pod has storage on its node.
func (p *pod) local() bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v map[string]any) bool { return v["emptyDir"] != nil || v["hostPath"] != nil })
}

type secret struct {
	Version string            `json:"apiVersion,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	Meta    meta              `json:"metadata"`
	Type    string            `json:"type,omitempty"`
	Data    map[string]string `json:"stringData,omitempty"` // only in requests
	Stored  map[string][]byte `json:"data,omitempty"`       // only in responses
}

// expired reports whether the secret is a bootstrap token that is no longer valid.
func (s *secret) expired() bool {
	at, err := time.Parse(time.RFC3339, string(s.Stored["expiration"]))
	return err == nil && !time.Now().Before(at)
}

type list[T any] struct {
	Kind  string `json:"kind"`
	Items []T    `json:"items"`
}
