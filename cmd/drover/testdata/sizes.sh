#!/bin/sh
# Prints the size of the stripped program with all drivers, and how much smaller it is without each of them.
set -eu
cd "$(dirname "$0")/../../.."
all=cmd/drover/main.go
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build() { CGO_ENABLED=0 go build -ldflags "-s -w" -overlay "$tmp/overlay" -o "$tmp/drover" ./cmd/drover && wc -c <"$tmp/drover"; }
echo '{}' >"$tmp/overlay"
whole=$(build)
echo "all: $whole bytes"
for driver in $(sed -n 's|^\t"drover/driver/\(.*\)"$|\1|p' $all); do
	sed "\|drover/driver/$driver\"|d; /{Open: $driver\\./d" $all >"$tmp/main.go"
	echo "{\"Replace\": {\"$PWD/$all\": \"$tmp/main.go\"}}" >"$tmp/overlay"
	echo "$driver: $((whole - $(build))) bytes"
done
