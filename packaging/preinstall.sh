#!/bin/sh
set -e
getent group drover >/dev/null || groupadd --system drover
getent passwd drover >/dev/null || useradd --system --gid drover --home-dir /var/lib/drover --no-create-home --shell /usr/sbin/nologin drover
