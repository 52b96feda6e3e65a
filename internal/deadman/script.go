package deadman

import (
	"strconv"
	"strings"
	"time"
)

// longestNap is how often the script looks at its file, unless the timeout is short.
const longestNap = 10 * time.Second

// Script is the init command's part of the switch: it returns at once and leaves a process behind that powers the
// instance off when nobody has wanted it for the time given. It asks for nothing but a POSIX shell, and for root where
// the instance is a machine.
func Script(after time.Duration) string {
	nap := min(max(after/10, time.Second), longestNap).Round(time.Second)
	naps := max(1, (after+nap-1)/nap)
	return strings.NewReplacer("NAPS", strconv.Itoa(int(naps)), "NAP", strconv.Itoa(int(nap/time.Second))).Replace(script)
}

// The script has cloud-init run it at every boot, as it does of itself only at the first. What powers an instance off
// may hang or be missing, so there is always a next thing to try.
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
