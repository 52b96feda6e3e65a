#!/bin/sh
set -e
# On an upgrade, which restarts the service afterwards, the argument is "upgrade" (Debian) or 1 (Fedora).
case "$1" in remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now drover.service
		[ ! -e /var/lib/drover/drover.db ] || echo "drover: the records stay in /var/lib/drover, and instances keep running; install drover again to destroy them" >&2
	fi
	;;
esac
