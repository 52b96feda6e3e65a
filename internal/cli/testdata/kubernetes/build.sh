#!/usr/bin/env bash
# Usage: build.sh FOLDER
# Builds the parts of a Kubernetes control plane into FOLDER/bin, from Go modules: etcd, kube-apiserver, kube-scheduler,
# kube-controller-manager, and kwok, which plays the kubelets, with its stages in FOLDER/stages.yaml. It keeps programs
# that are already there. The first build takes 5 to 20 minutes on two cores, and 4 GiB of Go's build cache.
set -euo pipefail

etcd=v3.6.16
kubernetes=1.36.3
kwok=v0.8.0

folder=$(realpath -m "${1:?usage: build.sh FOLDER}")
bin=$folder/bin
mkdir -p "$bin"
exec 9>"$folder/lock"
flock 9 # two builds at once would write the same files
export CGO_ENABLED=0 GOFLAGS="-trimpath ${GOFLAGS:-}"

# have NAME VERSION: whether this version of NAME has been built.
have() { [[ -x $bin/$1 && $(cat "$bin/$1.version" 2>/dev/null) == "$2" ]]; }

# build NAME VERSION PACKAGE [LDFLAGS]: builds one program, from the module in the current folder.
build() {
	echo "building $1 $2" >&2
	go build -ldflags "-s -w ${4:-}" -o "$bin/$1" "$3"
	echo "$2" >"$bin/$1.version"
}

# module NAME: creates our own module NAME in a new folder of that name, and changes to it.
module() {
	rm -rf "${folder:?}/$1"
	mkdir -p "$folder/$1"
	cd "$folder/$1"
	go mod init "drover/control-plane/$1" 2>/dev/null
}

# blank PACKAGE...: writes a source file that imports the packages, so that go mod tidy keeps their modules.
blank() {
	printf '//go:build tools\n\npackage tools\n\n' >tools.go
	printf 'import _ "%s"\n' "$@" >>tools.go
}

if ! have etcd $etcd; then
	module etcd
	go get go.etcd.io/etcd/server/v3@$etcd
	blank go.etcd.io/etcd/server/v3
	go mod tidy
	build etcd $etcd go.etcd.io/etcd/server/v3
fi

if ! have kwok $kwok; then
	module kwok
	go get sigs.k8s.io/kwok@$kwok
	blank sigs.k8s.io/kwok/cmd/kwok
	go mod tidy
	build kwok $kwok sigs.k8s.io/kwok/cmd/kwok
	# kwok follows its stages, and has none built in.
	stages=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
	for stage in "$stages"/node/fast/node-initialize.yaml "$stages"/node/heartbeat-with-lease/*heartbeat*.yaml "$stages"/pod/fast/pod-*.yaml; do
		echo ---
		cat "$stage"
	done >"$folder/stages.yaml"
fi

commands=(kube-apiserver kube-scheduler kube-controller-manager)
for command in "${commands[@]}"; do
	have "$command" $kubernetes || missing=1
done
if [[ ${missing:-} ]]; then
	module kubernetes
	# Kubernetes' own module replaces its parts by folders next to it, so go install refuses it. The parts are modules too.
	go mod edit -require "k8s.io/kubernetes@v$kubernetes"
	parts=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
	for part in $(go mod edit -json "$parts" | sed -n 's/.*"Path": "\.\/staging\/src\/\(.*\)".*/\1/p' | sort -u); do
		go mod edit -replace "$part=$part@v0.${kubernetes#*.}"
	done
	blank "${commands[@]/#/k8s.io/kubernetes/cmd/}"
	go mod tidy
	minor=${kubernetes#*.}
	version=k8s.io/component-base/version
	for command in "${commands[@]}"; do
		have "$command" $kubernetes || build "$command" $kubernetes "k8s.io/kubernetes/cmd/$command" \
			"-X $version.gitVersion=v$kubernetes -X $version.gitMajor=${kubernetes%%.*} -X $version.gitMinor=${minor%%.*}"
	done
fi
