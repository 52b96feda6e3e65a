#!/usr/bin/env bash
# Builds the release files of VERSION in bin/dist. For each of PLATFORMS: an archive with a static binary, man pages and
# completions, and an SBOM. For Linux also: a deb, an rpm and an OCI image. The same commit produces identical files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

out=bin/dist
commit_time=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH=$commit_time
# A package version must begin with a digit. A build without a version number sorts before the first release.
VERSION=${VERSION#v}
[[ $VERSION =~ ^[0-9]+\. ]] || VERSION="0~git$(date -u -d "@$commit_time" +%Y%m%d.%H%M).${VERSION//-/.}"
export VERSION
umask 022
rm -rf "$out"
mkdir -p "$out/tools" "$out/share/man" "$out/share/completions"

# Build the tools for this host, not for the target platform.
for tool in "$nfpm" "$cyclonedx"; do
	GOBIN=$PWD/$out/tools CGO_ENABLED=0 go install "$tool"
done
PATH=$PWD/$out/tools:$PATH

pack() { tar --sort=name --mtime="@$commit_time" --owner=0 --group=0 --numeric-owner -C "$1" -c . ; }

build() { # OS ARCH FILE
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 go build -trimpath -tags runners -ldflags "-s -w -X main.version=$VERSION" -o "$3" ./cmd/drover
}

# The program prints its own man pages (make man) and completions.
cp bin/man/* "$out/share/man"
gzip -9n "$out"/share/man/*
bin/drover completion bash >"$out/share/completions/drover.bash"
bin/drover completion zsh >"$out/share/completions/_drover"
bin/drover completion fish >"$out/share/completions/drover.fish"

# stage creates the file tree of a Linux package.
stage() { # ARCH FOLDER
	install -D "$out/drover-linux-$1" "$2/usr/bin/drover"
	install -Dm 644 packaging/drover.service "$2/usr/lib/systemd/system/drover.service"
	install -Dm 644 -t "$2/usr/share/man/man1" "$out"/share/man/*
	install -Dm 644 "$out/share/completions/drover.bash" "$2/usr/share/bash-completion/completions/drover"
	install -Dm 644 "$out/share/completions/_drover" "$2/usr/share/zsh/vendor-completions/_drover"
	install -Dm 644 "$out/share/completions/drover.fish" "$2/usr/share/fish/vendor_completions.d/drover.fish"
	install -Dm 644 -t "$2/usr/share/doc/drover/examples" packaging/drover.yaml packaging/Caddyfile examples/hello.yaml
	install -Dm 644 LICENSE "$2/usr/share/doc/drover/copyright"
	(cd docs && find . -type f -exec install -Dm 644 {} "$OLDPWD/$2/usr/share/doc/drover/docs/{}" \;)
}

# image builds an OCI image from Containerfile.
image() { # ARCH
	local from=$out/image
	install -D "$out/drover-linux-$1" "$from/root/usr/bin/drover"
	install -Dm 644 /etc/ssl/certs/ca-certificates.crt "$from/root/etc/ssl/certs/ca-certificates.crt"
	install -dm 1777 "$from/root/tmp"
	install -Dm 600 /dev/null "$from/state/.keep" # creates the folder, which must belong to the user
	podman build --quiet --format oci --timestamp "$commit_time" --platform "linux/$1" -t "localhost/drover:$1" -f packaging/Containerfile "$from" >/dev/null
	podman save --quiet --format oci-archive -o "$out/drover-$VERSION-linux-$1.oci.tar" "localhost/drover:$1"
	podman rmi "localhost/drover:$1" >/dev/null
	rm -r "$from"
}

for platform in $platforms; do
	os=${platform%/*} ARCH=${platform#*/}
	export ARCH
	build "$os" "$ARCH" "$out/drover-$os-$ARCH"
	name=drover-$VERSION-$os-$ARCH
	install -D "$out/drover-$os-$ARCH" "$out/archive/$name/drover"
	cp -R LICENSE README.md "$out/share/man" "$out/share/completions" "$out/archive/$name"
	pack "$out/archive" | gzip -9n >"$out/$name.tar.gz"
	rm -r "$out/archive"
	cyclonedx-gomod bin -json -version "$VERSION" -output "$out/$name.sbom.json" "$out/drover-$os-$ARCH"
	[[ $os = linux ]] || continue
	export STAGE=$out/stage
	stage "$ARCH" "$STAGE"
	nfpm package -f packaging/nfpm.yaml -p deb -t "$out"
	nfpm package -f packaging/nfpm.yaml -p rpm -t "$out"
	rm -r "$STAGE"
	image "$ARCH"
done
rm -rf "$out/tools" "$out/share" "$out"/drover-linux-* "$out"/drover-darwin-*
(cd "$out" && sha256sum -- * >SHA256SUMS)
ls -l "$out"
