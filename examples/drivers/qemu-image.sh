#!/bin/sh
# qemu-image.sh FOLDER creates the image that qemu.sh boots: a kernel and an initramfs. The kernel is Debian's cloud
# kernel. The initramfs, about three megabytes, contains busybox, an SSH server (dropbear) and network modules.
#
# Requires Debian's packages busybox-static, dropbear-bin and cpio. Downloads a kernel but installs nothing.
set -eu

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ -e "$folder/initrd" ] && [ -e "$folder/vmlinuz" ]; then exit 0; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# Debian's newest cloud kernel. If root runs this script, apt downloads as another user, which must be able to write here.
kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)/\1/p' | head -n 1)
chmod 755 "$work"
(cd "$work" && apt-get download "$kernel" >&2)
dpkg -x "$work"/linux-image-*.deb "$work/kernel"

for dir in bin sbin etc proc sys dev run tmp root/.ssh lib/modules usr/bin usr/sbin var/log; do mkdir -p "$root/$dir"; done
cp /bin/busybox "$root/bin/busybox"
for name in $(/bin/busybox --list); do
	[ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
done
ln -s bin/busybox "$root/init"

# The SSH server and its shared libraries.
cp "$(command -v dropbear)" "$root/usr/sbin/dropbear"
ldd "$root/usr/sbin/dropbear" | grep -o '/[^ ]*' | while read -r library; do
	mkdir -p "$root$(dirname "$library")"
	cp -L "$library" "$root$library"
done

# The modules, in loading order.
for name in failover net_failover virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_net; do
	file=$(find "$work/kernel" -name "$name.ko*" | head -n 1)
	case $file in
	"") continue ;; # built into the kernel
	*.xz) xz -dc "$file" >"$root/lib/modules/$name.ko" ;;
	*) cp "$file" "$root/lib/modules/$name.ko" ;;
	esac
	echo "$name" >>"$root/lib/modules/order"
done

echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo /bin/sh >"$root/etc/shells"
cat >"$root/etc/inittab" <<'END'
::sysinit:/etc/boot
::respawn:/usr/sbin/dropbear -F -E -s -r /etc/host_key
::shutdown:/bin/sync
END
# Each instance adds /etc/host_key, /etc/name, /root/.ssh/authorized_keys and its scripts in /etc/boot.d.
cat >"$root/etc/boot" <<'END'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs run /run
mkdir -p /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
while read -r module; do insmod "/lib/modules/$module.ko"; done </lib/modules/order
hostname -F /etc/name
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
echo 'nameserver 10.0.2.3' >/etc/resolv.conf
chmod 755 / /etc # the instance's initramfs makes them private
chmod 700 /root /root/.ssh /etc/host_key
for script in /etc/boot.d/*; do
	[ -e "$script" ] && sh "$script" &
done
END
chmod 755 "$root/etc/boot"

(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -9) >"$folder/initrd.next"
cp "$work"/kernel/boot/vmlinuz-* "$folder/vmlinuz"
mv "$folder/initrd.next" "$folder/initrd"
