package deadman

import (
	"strconv"
	"strings"
	"time"
)

// longestNap is how often the script reads its file, unless the timeout is short.
const longestNap = 10 * time.Second

// Script returns the init command's part of the switch. The script returns at once, and leaves behind a process that
// powers the instance off once nobody has held the switch for the given time. It needs only a POSIX shell, and root if
// the instance is a VM.
func Script(after time.Duration) string {
	nap := min(max(after/10, time.Second), longestNap).Round(time.Second)
	naps := max(1, (after+nap-1)/nap)
	return strings.NewReplacer("NAPS", strconv.Itoa(int(naps)), "NAP", strconv.Itoa(int(nap/time.Second))).Replace(script)
}

// The script copies itself where cloud-init runs it at every boot; by default cloud-init runs it only at the first. A
// command that powers off may fail or be missing, so there is always another to try.
const script = `#!/bin/sh
case $0 in /var/lib/cloud/instance*) cp "$0" /var/lib/cloud/scripts/per-boot/drover ;; esac
f=${DROVER_SWITCH:-/run/drover-switch}
rm -f "$f"
(umask 0 && >"$f") || exit
(
trap '' HUP
n=0 o=
while [ $n -lt NAPS ]; do
sleep NAP
n=$((n+1)) h=
read -r h <"$f"
[ "$h" = off ] && break
[ "$h" = "$o" ] || n=0 o=$h
done
while :; do
if [ "$DROVER_POWEROFF" ]; then "$DROVER_POWEROFF"; sleep 1; continue; fi
echo "drover: no controller uses this instance: powering off" >/dev/kmsg
for c in poweroff "shutdown -P now" "poweroff -f" "halt -f -p"; do $c; sleep 20; done
echo o >/proc/sysrq-trigger
done
) </dev/null >/dev/null 2>&1 &
`
