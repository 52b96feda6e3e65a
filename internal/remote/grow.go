package remote

import (
	"context"
	"fmt"
	"strconv"

	"drover"
)

// growScript makes the root file system as large as its volume, which may take a while to be seen. $1 is how large it
// has to be, in KiB. There is nothing to do where it is that large, as on a volume that was grown before. Needed are
// util-linux, growpart of cloud-utils for a volume with partitions, and the tool of the file system; and, unless the
// user is root, sudo without a password.
const growScript = `
size() { df -Pk / | { read -r title; read -r device kib rest; echo "$kib"; }; }
enough() { [ "$(size)" -ge "$1" ]; }
enough "$1" && exit 0
as=
[ "$(id -u)" -eq 0 ] || as="sudo -n"
device=$(findmnt -nvro SOURCE /) || exit 1 # without the subvolume that a root of btrfs often is
kind=$(findmnt -nro FSTYPE /)
disk=$(lsblk -nro PKNAME "$device" | head -n 1)
part=$(cat "/sys/class/block/${device##*/}/partition" 2>/dev/null)
tries=0
while :; do
	said=$(
		if [ -n "$part" ]; then
			$as sh -c "echo 1 >/sys/class/block/$disk/device/rescan" 2>/dev/null
			$as growpart "/dev/$disk" "$part"
		fi
		case $kind in
		ext*) $as resize2fs "$device" ;;
		xfs) $as xfs_growfs / ;;
		btrfs) $as btrfs filesystem resize max / ;;
		*) echo "a file system of kind $kind cannot be grown" ;;
		esac 2>&1
	)
	enough "$1" && exit 0
	tries=$((tries + 1))
	if [ $tries -ge "$2" ]; then
		printf 'the root file system has %s KiB, and not %s: %s\n' "$(size)" "$1" "$said" >&2
		exit 1
	fi
	sleep 2
done
`

// growTries is how often it is looked whether the instance sees its volume as large as it is.
const growTries = 120

// GrowRoot brings the instance's root file system to the size of a volume that has become so large. Nine tenths of that
// are enough: a file system has use of its own for the rest, and volumes hold more than one.
func (c *Conn) GrowRoot(ctx context.Context, size drover.Bytes) error {
	kib := size / 1024 / 10 * 9
	if _, _, err := runWithin(ctx, c.session.conn, shell(growScript, strconv.FormatInt(int64(kib), 10), strconv.Itoa(growTries))); err != nil {
		return drover.Errorf(drover.KindTransient, "%s", fmt.Errorf("growing its file system: %w", err))
	}
	return nil
}
