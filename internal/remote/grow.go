package remote

import (
	"context"
	"strconv"

	"drover"
)

// growScript grows the root file system to the size of its volume, which the instance may take a while to see. $1 is
// the size that it must reach, in KiB; $2 is how many times to try. If the file system already has that size, the
// script does nothing. It needs util-linux, growpart of cloud-utils if the volume has partitions, the file system's
// tool, and, unless the user is root, sudo without a password.
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
		*) echo "$kind file systems cannot be grown" ;;
		esac 2>&1
	)
	enough "$1" && exit 0
	tries=$((tries + 1))
	if [ $tries -ge "$2" ]; then
		printf 'the root file system has %s KiB, not %s: %s\n' "$(size)" "$1" "$said" >&2
		exit 1
	fi
	sleep 2
done
`

// growTries is how many times to try until the instance sees its volume's new size.
const growTries = 120

// GrowRoot grows the instance's root file system to the new size of its volume. Nine tenths of the size are enough: the
// file system's own data and other partitions take the rest.
func (c *Conn) GrowRoot(ctx context.Context, size drover.Bytes) error {
	kib := size / 1024 / 10 * 9
	if _, _, err := runWithin(ctx, c.session.conn, shell(growScript, strconv.FormatInt(int64(kib), 10), strconv.Itoa(growTries))); err != nil {
		return transient("growing its file system", err)
	}
	return nil
}
