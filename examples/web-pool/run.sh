#!/bin/sh
# Serves http://127.0.0.1:8480 until interrupted. Requires drover, nginx and busybox in PATH. Passes its arguments to
# drover serve.
set -eu
cd "$(dirname "$0")"
PATH=$PATH:/usr/sbin
mkdir -p tmp upstreams
nginx -p "$PWD" -c nginx.conf &
trap 'kill $!' EXIT
echo "the page is at http://127.0.0.1:8480 once an instance is ready; ./load.sh 60 requests it for a minute" >&2
drover serve -c drover.yaml "$@"
