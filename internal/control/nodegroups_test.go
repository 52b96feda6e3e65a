package control

import (
	"testing"

	"drover"
)

func TestAKubeletIsGivenOnlyLabelsThatItAccepts(t *testing.T) {
	labels := map[string]string{
		"tier": "batch", "drover/group": "web", "node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/team": "x", "beta.k8s.io/x": "y",
		"kubernetes.io/x": "y", "node.kubernetes.io/disk": "ssd", "a.kubelet.kubernetes.io/x": "y", "my-kubernetes.io/x": "y",
	}
	want := "a.kubelet.kubernetes.io/x=y,drover/group=web,my-kubernetes.io/x=y,node.kubernetes.io/disk=ssd,tier=batch"
	if got := kubeletLabels(labels); got != want {
		t.Errorf("the labels are %s, want %s: with another one, the kubelet would not start", got, want)
	}
}

func TestAPlaceholderFromLostRecordsNamesNoOtherInstance(t *testing.T) {
	c := &Controller{cfg: Config{Fleet: "f"}, setup: &setup{}}
	node := drover.GroupNode{Instance: 1, Name: "f-new-1"}
	c.nameNode("web", &node)
	now := drover.NewNodeGroups([]drover.NodeGroup{{Name: "web", Nodes: []drover.GroupNode{node}}})
	for id, want := range map[string]int64{"drover-asked://f/web/f-new-1": 1, "drover-asked://f/web/f-new-2": 2, "drover-asked://f/web/f-old-1": 0} {
		key, err := c.nodeKey(t.Context(), now, "web", id)
		if key.Instance != want || (err != nil) != (want == 0) {
			t.Errorf("%s names instance %d (%v), want %d", id, key.Instance, err, want)
		}
	}
}
