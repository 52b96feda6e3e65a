#!/bin/sh
# A hook that adds each ready instance to nginx's upstream servers and removes those that are gone.
set -eu
mkdir -p upstreams
number=${NAME##*-}
address=127.18.$((number / 250)).$((number % 250 + 1)):8080
if [ "$DROVER_HOOK" = ready ]; then
	echo "server $address max_fails=1 fail_timeout=2s;" >"upstreams/.$NAME"
	mv "upstreams/.$NAME" "upstreams/$NAME.conf"
else
	rm -f "upstreams/$NAME.conf"
fi
echo "$DROVER_HOOK $NAME" >>hooks.log
[ ! -e nginx.pid ] || kill -HUP "$(cat nginx.pid)"
