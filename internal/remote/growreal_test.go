package remote

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// rootOnALoop makes a disk of 1 GiB in the current folder, with one partition, or none if $2 is empty, and a file
// system of the kind $1 on it. It doubles the disk's size, as a cloud would, and runs the command $3 with that file
// system as the root, with this host's tools. Then it prints how many KiB the root has. It exits with 77 if the kernel
// does not allow that here.
const rootOnALoop = `
set -eu
mount --make-rprivate / || exit 77
truncate -s 1G disk
[ -z "$2" ] || printf 'label: dos\nstart=2048\n' | sfdisk -q disk
loop=$(losetup -f --show "$PWD/disk") || exit 77
trap 'set +e; umount -R root || umount -Rl root; partx -d "$loop"; losetup -d "$loop"' EXIT
volume=$loop
if [ -n "$2" ]; then
	partx -a "$loop" 2>/dev/null || true # the kernel may have seen it by itself
	volume=${loop}p1
	[ -b "$volume" ] || exit 77
fi
"mkfs.$1" -q "$volume" || exit 77
mkdir root
mount "$volume" root || exit 77
if [ "$1" = btrfs ]; then # whose root is a subvolume on most systems
	btrfs -q subvolume create root/@
	umount root
	mount -o subvol=@ "$volume" root
fi
mkdir root/tmp
for one in /bin /sbin /lib /lib64 /usr /etc /proc /sys /dev; do
	if [ -L "$one" ]; then
		cp -a "$one" root/
	elif [ -d "$one" ]; then
		mkdir -p "root$one"
		mount --rbind "$one" "root$one"
	fi
done
truncate -s 2G disk
losetup -c "$loop"
chroot root /bin/sh -c "$3"
chroot root df -Pk / | sed -n '2s/^[^ ]* *\([0-9]*\).*/has \1/p'
`

// resources is the mask of the capability that Linux requires to grow ext4: CAP_SYS_RESOURCE, number 24.
const resources = 1 << 24

// hasCapability reports whether this process has a capability.
func hasCapability(t *testing.T, capability uint64) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	has, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return has&capability != 0
}

// covers K14
func TestGrowScriptWithRealTools(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes file systems on loop devices")
	}
	for _, tt := range []struct {
		kind, parted string
		needs        []string
	}{
		{"ext4", "parted", []string{"growpart", "resize2fs"}},
		{"ext4", "", []string{"resize2fs"}},
		{"xfs", "parted", []string{"growpart", "xfs_growfs"}},
		{"xfs", "", []string{"xfs_growfs"}},
		{"btrfs", "parted", []string{"growpart", "btrfs"}},
	} {
		name := fmt.Sprintf("grows a root of %s on a disk with partitions", tt.kind)
		if tt.parted == "" {
			name = fmt.Sprintf("grows a root of %s on a disk without partitions", tt.kind)
		}
		t.Run(name, func(t *testing.T) {
			for _, tool := range append(tt.needs, "unshare", "losetup", "sfdisk", "partx", "findmnt", "lsblk", "mkfs."+tt.kind) {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("there is no %s: Debian's packages cloud-guest-utils, fdisk, util-linux, e2fsprogs, xfsprogs and btrfs-progs have the tools", tool)
				}
			}
			if tt.kind == "ext4" && !hasCapability(t, resources) {
				t.Skip("Linux grows ext4 only for a process with CAP_SYS_RESOURCE")
			}
			const wants = 2 << 20 / 10 * 9 // KiB
			cmd := exec.Command("unshare", "-m", "/bin/sh", "-c", rootOnALoop, "loop", tt.kind, tt.parted, shell(growScript, fmt.Sprint(wants), "3"))
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() == 77 {
				t.Skipf("no file system on a loop device here: %s", out)
			}
			_, said, _ := strings.Cut(string(out), "has ")
			var has int
			if fmt.Sscan(said, &has); err != nil || has < wants {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
