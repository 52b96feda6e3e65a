#!/bin/sh
# Prints how large the stripped program is with all drivers, and how much smaller with each of them left out.
set -eu
cd "$(dirname "$0")/../../.."
all=cmd/drover/drivers.go
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build() { CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -overlay "$tmp/overlay" -o "$tmp/drover" ./cmd/drover && wc -c <"$tmp/drover"; }
echo '{}' >"$tmp/overlay"
whole=$(build)
echo "all: $whole bytes"
for driver in $(sed -n 's|^\t"drover/driver/\(.*\)"$|\1|p' $all); do
	sed "\|drover/driver/$driver\"|d; s|{open: $driver\\.Open, keys: $driver\\.Config{}|{open: nil|" $all >"$tmp/drivers.go"
	echo "{\"Replace\": {\"$PWD/$all\": \"$tmp/drivers.go\"}}" >"$tmp/overlay"
	echo "$driver: $((whole - $(build))) bytes"
done
