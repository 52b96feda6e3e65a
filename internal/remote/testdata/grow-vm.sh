#!/bin/sh
# grow-vm.sh FOLDER COMMAND: makes what a VM boots to try COMMAND. FOLDER gets vmlinuz and initrd, from Debian's cloud
# kernel, and disk, of 1 GiB with one partition. The partition is an ext4 root with this host's tools, which prints
# READY, runs the command, prints how it ended and how many KiB the root has, and powers off.
#
# It needs Debian's packages busybox-static, cpio, cloud-guest-utils and fdisk, downloads a kernel unless one is there,
# and installs nothing.
set -eu

[ $# = 2 ] || { echo "usage: $0 FOLDER COMMAND" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
if [ ! -e vmlinuz ]; then
	kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)/\1/p' | head -n 1)
	chmod 755 .
	apt-get -q download "$kernel" >&2
	dpkg -x linux-image-*.deb kernel
	cp kernel/boot/vmlinuz-* vmlinuz
fi
rm -rf first root

# The first root, in memory, loads the disk drivers and switches to the root on the disk.
mkdir -p first/bin first/dev first/root first/modules
cp /bin/busybox first/bin/busybox
for name in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk scsi_common scsi_mod sd_mod virtio_scsi; do
	file=$(find kernel/lib -name "$name.ko" | head -n 1)
	[ -z "$file" ] || { cp "$file" first/modules/ && echo "$name" >>first/modules/order; } # otherwise it is built into the kernel
done
cat >first/init <<'END'
#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
while read -r module; do busybox insmod "/modules/$module.ko"; done </modules/order
for try in 1 2 3 4 5 6 7 8 9 10; do
	for volume in /dev/vda1 /dev/sda1; do
		[ -b $volume ] && busybox mount -t ext4 $volume /root && break 2
	done
	busybox sleep 1
done
busybox mount --move /dev /root/dev
exec busybox switch_root /root /init
END
chmod 755 first/init
(cd first && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >initrd

mkdir -p root/bin root/proc root/sys root/dev root/tmp root/etc
for name in sh df cat id head sleep mktemp rm readlink wc tr cut mawk grep sed findmnt lsblk sfdisk partx growpart resize2fs sync dirname basename cp flock uname; do
	file=$(command -v "$name")
	cp -L "$file" "root/bin/$name"
	ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "root${library%/*}"
		cp -L "$library" "root$library"
	done
done
ln -s mawk root/bin/awk
cp /bin/busybox root/bin/busybox
printf '%s\n' "$2" >root/command
cat >root/init <<'END'
#!/bin/sh
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -o remount,rw /
exec >/dev/console 2>&1
echo READY
sh /command
echo "ended with $?"
echo "has $(df -Pk / | sed -n '2s/^[^ ]* *\([0-9]*\).*/\1/p') KiB"
busybox poweroff -f
END
chmod 755 root/init

rm -f volume disk
truncate -s 1023M volume
mkfs.ext4 -q -d root volume
truncate -s 1G disk
printf 'label: dos\nstart=2048\n' | sfdisk -q disk
dd if=volume of=disk bs=1M seek=1 conv=sparse,notrunc status=none
rm volume
