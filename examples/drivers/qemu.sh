#!/bin/bash
# A driver for Drover that runs instances as QEMU virtual machines on this host. It implements the protocol in
# docs/clouds/external.md with one process per call:
#
#	clouds:
#	  vms:
#	    driver: external
#	    command: [./qemu.sh]
#	    options:
#	      image: /var/lib/drover/qemu-image     # created by qemu-image.sh
#	      types: small=1:512 large=2:2048       # NAME=VCPUS:MEMORY in MiB; default: small=1:512
#	      price: "0.01"                         # per hour and vCPU; default: 0
#	      accel: kvm                            # if the host supports it; default: emulation
#
# Requires bash, jq, cpio, flock and Debian's packages qemu-system-x86 and dropbear-bin.
#
# An instance is a folder FOLDER/FLEET/NAME with instance.json (the data that never changes), tags.json (the tags) and pid (the
# process id of QEMU). The instance is gone when that process has ended. Folders are created and removed under a lock, so
# two instances never have the same name.
set -euo pipefail

read -r request
# Read the request into shell variables.
eval "$(jq -r '. as $r | .options as $o | .args as $a | (.args.candidates // [{}])[0] as $c | {
	id: $r.id, fleet: $r.fleet, home: "\($r.folder)/\($r.fleet)", image: $o.image, types: ($o.types // "small=1:512"), price: ($o.price // "0"),
	accel: ($o.accel // "tcg,thread=multi"), instance: $a.id, name: $a.name, type: $c.type, zone: $c.zone, market: $c.market,
	host_key: $a.host_key, public_key: $a.public_key, tags: ($a.tags // {} | tojson), scripts: ($a.scripts // [] | length)
} | to_entries[] | .key + "=" + (.value // "" | @sh)' <<<"$request")"

reply() { jq -cn --argjson id "$id" --argjson result "$1" '{$id, $result}'; }
fail() { # KIND MESSAGE
	jq -cn --argjson id "$id" --arg kind "$1" --arg message "$2" '{$id, error: {$kind, $message, scope: "all"}}'
	exit 0
}

# lives FOLDER succeeds if the instance's QEMU is running. An unrelated process with the same id does not have the folder
# in its arguments.
lives() {
	local pid
	pid=$(cat "$1/pid" 2>/dev/null) && grep -qzF "$1/" "/proc/$pid/cmdline" 2>/dev/null
}

# show FOLDER prints the instance as an object for a reply.
show() {
	jq -c --slurpfile tags "$1/tags.json" '. + {tags: $tags[0]}' "$1/instance.json"
}

offerings() {
	local all=() one name size
	for one in $types; do
		name=${one%%=*} size=${one#*=}
		all+=("$(jq -cn --arg type "$name" --argjson vcpus "${size%:*}" --argjson mib "${size#*:}" --argjson price "$price" \
			'{$type, zone: "here", market: "on_demand", $vcpus, memory_bytes: ($mib * 1048576), disk_bytes: ($mib * 262144), arch: "amd64",
			price_usd_per_hour: ($price * $vcpus)}')")
	done
	reply "$(printf '%s\n' "${all[@]}" | jq -cs '{offerings: .}')"
}

# size TYPE prints VCPUS:MEMORY, or nothing if there is no such type.
size() {
	local one
	for one in $types; do
		[[ ${one%%=*} != "$1" ]] || echo "${one#*=}"
	done
}

# path ID prints the folder of an instance of this fleet. It fails for an id that this driver never returned.
path() {
	local name=${1#"$fleet".}
	[[ $1 == "$fleet".* && $name =~ ^[a-zA-Z0-9-]+$ ]] && echo "$home/$name"
}

locked() {
	mkdir -p "$home"
	exec 9>"$home/.lock"
	flock 9
}

list() {
	local found=()
	locked
	for folder in "$home"/*/; do
		folder=${folder%/}
		[[ -d $folder ]] || continue
		if lives "$folder"; then
			found+=("$(show "$folder")")
		else
			rm -rf "$folder"
		fi
	done
	reply "$(printf '%s\n' "${found[@]}" | jq -cs '{instances: .}')"
}

# overlay FOLDER appends the instance's own files to the image as a second initramfs, which the kernel unpacks over the
# first.
overlay() {
	local root=$1/root i
	umask 077
	mkdir -p "$root/etc/boot.d" "$root/root/.ssh"
	printf '%s' "$host_key" >"$1/key"
	dropbearconvert openssh dropbear "$1/key" "$root/etc/host_key" >/dev/null 2>&1
	rm "$1/key"
	echo "$name" >"$root/etc/name"
	echo "$public_key" >"$root/root/.ssh/authorized_keys"
	for ((i = 0; i < scripts; i++)); do
		jq -j ".args.scripts[$i]" <<<"$request" >"$root/etc/boot.d/$i"
	done
	(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1 | cat "$image/initrd" - >"$1/initrd")
	rm -rf "$root"
}

# start FOLDER PORT SIZE starts QEMU in the background, in its own session. It fails if the port is in use.
start() {
	qemu-system-x86_64 -machine pc -accel "$accel" -cpu max -smp "${3%:*}" -m "${3#*:}" -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$image/vmlinuz" -initrd "$1/initrd" -append 'console=ttyS0 quiet panic=1' -serial "file:$1/console" \
		-netdev "user,id=net,hostfwd=tcp:127.0.0.1:$2-:22" -device virtio-net-pci,netdev=net,romfile= \
		-daemonize -pidfile "$1/pid" 9>&- </dev/null >/dev/null 2>"$1/refused"
}

create() {
	local folder size port
	folder=$(path "$fleet.$name") || fail invalid "$name is not a valid name"
	size=$(size "$type")
	[[ $size ]] || fail invalid "there is no type $type"
	[[ -e $image/initrd && -e $image/vmlinuz ]] || fail invalid "there is no image in $image; create it with qemu-image.sh"
	locked
	if ! lives "$folder"; then
		rm -rf "$folder"
		mkdir "$folder"
		overlay "$folder"
		echo "$tags" >"$folder/tags.json"
		for port in $(shuf -i 20000-29999 -n 20); do
			jq -cn --arg id "$fleet.$name" --arg type "$type" --arg zone "$zone" --arg market "$market" --arg public "127.0.0.1:$port" \
				--arg created "$(date -u +%FT%TZ)" '{$id, $type, $zone, $market, state: "running", $public, user: "root", $created}' >"$folder/instance.json"
			start "$folder" "$port" "$size" && break
		done
	fi
	lives "$folder" || fail capacity "QEMU does not start: $(head -c 300 "$folder/refused")"
	reply "{\"instance\": $(show "$folder")}"
}

destroy() {
	local folder pid
	folder=$(path "$instance") || { reply '{}'; return; }
	locked
	if lives "$folder"; then
		pid=$(cat "$folder/pid")
		kill -KILL "$pid"
		while lives "$folder"; do sleep 0.05; done
	fi
	rm -rf "$folder"
	reply '{}'
}

describe() {
	local folder
	folder=$(path "$instance") && locked && lives "$folder" || fail not_found "there is no such instance"
	reply "{\"instance\": $(show "$folder")}"
}

set_tags() {
	local folder
	folder=$(path "$instance") && locked && lives "$folder" || fail not_found "there is no such instance"
	echo "$tags" >"$folder/tags.next"
	mv "$folder/tags.next" "$folder/tags.json"
	reply '{}'
}

case ${1:-} in
open) reply '{"host_keys": "planted", "power_off": "ends", "list_lag": "0s", "calls": ["offerings", "describe"]}' ;;
offerings | list | describe | create | destroy | set_tags) "$1" ;;
*) fail unsupported "there is no call ${1:-}" ;;
esac
