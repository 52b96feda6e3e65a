#!/bin/sh
# What an instance does at its first boot: it serves a page. Here all instances share one machine, so each takes an address of the loopback, which follows from
# its number.
number=$(echo {name} | sed 's/.*-//')
address=127.18.$((number / 250)).$((number % 250 + 1)):8080
mkdir -p "$HOME/www"
echo "page of {name} in {zone}" >"$HOME/www/index.html"
busybox httpd -f -p "$address" -h "$HOME/www" &
until busybox wget -q -O /dev/null "http://$address/"; do sleep 0.1; done
: >"$HOME/serves"
wait
