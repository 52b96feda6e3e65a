#!/bin/sh
set -e
# An upgrade says "upgrade" on Debian and 1 on Fedora, and restarts the service afterwards.
case "$1" in remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now drover.service
		[ ! -e /var/lib/drover/drover.db ] || echo "drover: the records stay in /var/lib/drover, and instances run on until drover is installed again" >&2
	fi
	;;
esac
