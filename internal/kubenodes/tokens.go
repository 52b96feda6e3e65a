package kubenodes

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"drover"
)

// keepTokens keeps one valid bootstrap token for each instance whose node has yet to join, and no other. The time to join
// may be extended beyond a token's expiration.
func (k *Keeper) keepTokens(ctx context.Context, groups *drover.NodeGroups) error {
	wanted := map[string]drover.GroupNode{}
	for _, g := range groups.All() {
		for _, n := range g.Nodes {
			if n.Instance != 0 && !n.Joined && n.Failure == nil && n.State != drover.NodeDeleting {
				id, _, _ := strings.Cut(k.Fleet.JoinToken(n.Name).Reveal(), ".")
				wanted[tokenPrefix+id] = n
			}
		}
	}
	const path = "/api/v1/namespaces/" + system + "/secrets"
	secrets, err := objects[secret](ctx, k.Cluster, path+"?labelSelector="+url.QueryEscape(fleetLabel+"="+k.Name))
	if err != nil {
		return err
	}
	var unused []secret
	for _, s := range secrets {
		if _, ok := wanted[s.Meta.Name]; ok && !s.expired() {
			delete(wanted, s.Meta.Name)
		} else {
			unused = append(unused, s)
		}
	}
	removed := together(unused, func(s secret) error { return k.remove(ctx, path+"/"+s.Meta.Name) })
	created := together(slices.Sorted(maps.Keys(wanted)), func(name string) error {
		err := k.Cluster.call(ctx, "POST", path, k.token(name, wanted[name]), nil)
		if drover.KindOf(err) == drover.KindConflict {
			return nil
		}
		return err
	})
	return cmp.Or(append(removed, created...)...)
}

func (k *Keeper) token(name string, n drover.GroupNode) secret {
	id, private, _ := strings.Cut(k.Fleet.JoinToken(n.Name).Reveal(), ".")
	return secret{
		Version: "v1", Kind: "Secret", Type: "bootstrap.kubernetes.io/token",
		Meta: meta{Name: name, Namespace: system, Labels: map[string]string{fleetLabel: k.Name}},
		Data: map[string]string{
			"token-id": id, "token-secret": private, "expiration": time.Now().Add(k.JoinTimeout).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
		},
	}
}
