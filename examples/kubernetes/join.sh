#!/bin/sh
# Runs at a node's first boot, on Debian or Ubuntu. Installs containerd and the cluster's version of kubeadm, then joins
# the cluster. Drover replaces the placeholders in braces.
set -eu
VERSION=v1.36                # the cluster's version
SERVER=10.0.0.1:6443         # its API server
CA_HASH=sha256:REPLACE_ME    # see README.md

modprobe br_netfilter
printf 'net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n' >/etc/sysctl.d/90-kubernetes.conf
sysctl --system
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y containerd curl gpg
mkdir -p /etc/containerd /etc/apt/keyrings
containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >/etc/containerd/config.toml
systemctl restart containerd
curl -fsSL "https://pkgs.k8s.io/core:/stable:/$VERSION/deb/Release.key" | gpg --dearmor -o /etc/apt/keyrings/kubernetes.gpg
echo "deb [signed-by=/etc/apt/keyrings/kubernetes.gpg] https://pkgs.k8s.io/core:/stable:/$VERSION/deb/ /" >/etc/apt/sources.list.d/kubernetes.list
apt-get update
apt-get install -y kubelet kubeadm

cat >/etc/default/kubelet <<END
KUBELET_EXTRA_ARGS=--provider-id={node_id} --hostname-override={name} --node-labels={labels} --register-with-taints={taints}
END
kubeadm join "$SERVER" --node-name {name} --token {token} --discovery-token-ca-cert-hash "$CA_HASH"
