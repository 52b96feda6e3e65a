#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart drover.service # running jobs keep running
fi
