package control

import "testing"

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
