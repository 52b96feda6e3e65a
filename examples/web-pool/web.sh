#!/bin/sh
# Runs at an instance's first boot and serves a page. All instances share one host, so each uses a different loopback
# address, computed from the instance's number.
number=$(echo {name} | sed 's/.*-//')
address=127.18.$((number / 250)).$((number % 250 + 1)):8080
mkdir -p "$HOME/www"
echo "page of {name} in {zone}" >"$HOME/www/index.html"
busybox httpd -f -p "$address" -h "$HOME/www" &
until busybox wget -q -O /dev/null "http://$address/"; do sleep 0.1; done
: >"$HOME/serves"
wait
