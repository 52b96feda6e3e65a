#!/bin/sh
# A cloud for tests: each instance is a real OpenSSH server that made its own host key. The option host_keys says how such a key is proved: by
# the secret that Drover's init script plants, or by the output of a command, which is compared with what this driver left on the instance.
set -eu
read -r request
get() { printf '%s\n' "$request" | jq -r "$1"; }
result() { printf '%s\n' "$1" | jq -c "{id: $(get .id), result: .}"; exit; }
refuse() { jq -cn "{id: $(get .id), error: {kind: \"$1\", message: \"$2\"}}"; exit; }
all=$(get .folder)
alive() { [ -s "$all/$1/pid" ] && kill -0 "$(cat "$all/$1/pid")" 2>/dev/null; }
show() {
	jq -cn --arg id "$1" --arg address "$(cat "$all/$1/address")" --arg user "$(id -un)" --slurpfile tags "$all/$1/tags" \
		'{id: $id, tags: $tags[0], type: "small", zone: "default", market: "on_demand", state: "running", public: $address, user: $user}'
}

case $(get .call) in
open)
	case $(get .options.host_keys) in
	secret) result '{"host_keys": "secret", "power_off": "ends", "list_lag": "0s"}' ;;
	*) result '{"host_keys": "verified", "power_off": "ends", "list_lag": "0s", "calls": ["verify_host_key"]}' ;;
	esac ;;
list)
	found=
	for f in "$all"/*/pid; do
		id=$(basename "$(dirname "$f")")
		if alive "$id"; then found="$found $(show "$id")"; fi
	done
	result "$(printf '%s' "$found" | jq -cs --argjson want "$(get '.args.tags | tojson')" \
		'{instances: map(select(.tags as $t | $want | to_entries | all($t[.key] == .value)))}')" ;;
create)
	[ "$(get '.args.candidates[0].type')" = small ] || refuse invalid "there is no such type"
	id=$(get .args.name)
	i=$all/$id
	exec 9>"$all/lock" && flock 9
	if ! alive "$id"; then
		mkdir -p "$i/home"
		n=$(($(cat "$all/count" 2>/dev/null || echo 0) + 1))
		echo $n >"$all/count"
		echo "$(get .options.network).$n:2222" >"$i/address"
		get '.args.tags | tojson' >"$i/tags"
		get .args.public_key >"$i/authorized_keys"
		ssh-keygen -q -t ed25519 -N '' -f "$i/host_key" </dev/null
		od -An -tx1 -N16 /dev/urandom | tr -d ' \n' >"$i/home/told"
		cp "$i/home/told" "$i/told"
		printf '#!/bin/sh\nkill $(cat "%s/pid")\n' "$i" >"$i/poweroff"
		chmod +x "$i/poweroff"
		export HOME="$i/home" DROVER_SWITCH="$i/switch" DROVER_POWEROFF="$i/poweroff" DROVER_SECRET_FILE="$i/secret"
		cat >"$i/sshd_config" <<-END
			ListenAddress $(cat "$i/address")
			HostKey $i/host_key
			AuthorizedKeysFile $i/authorized_keys
			PidFile none
			PermitRootLogin prohibit-password
			PasswordAuthentication no
			StrictModes no
			UsePAM no
			SetEnv HOME=$HOME PATH=$PATH DROVER_SWITCH=$DROVER_SWITCH DROVER_POWEROFF=$DROVER_POWEROFF DROVER_SECRET_FILE=$DROVER_SECRET_FILE
			ForceCommand cd "\$HOME" && exec /bin/sh -c "\$SSH_ORIGINAL_COMMAND"
		END
		k=0
		while [ $k -lt "$(get '.args.scripts // [] | length')" ]; do
			get ".args.scripts[$k]" >"$i/init-$k"
			k=$((k + 1))
		done
		mkfifo "$i/alive"
		setsid chaos-instance "$i" <>"$i/alive" >"$i/log" 2>&1 9>&- &
		echo $! >"$i/pid"
	fi
	result "{\"instance\": $(show "$id")}" ;;
destroy)
	id=$(get .args.id)
	if alive "$id"; then kill "$(cat "$all/$id/pid")"; fi
	rm -f "$all/$id/pid"
	result '{}' ;;
set_tags)
	alive "$(get .args.id)" || refuse not_found gone
	get '.args.tags | tojson' >"$all/$(get .args.id)/tags"
	result '{}' ;;
verify_host_key)
	case $(get '.args.output // "none"') in
	none) result '{"run": "cat told"}' ;;
	"$(cat "$all/$(get .args.id)/told")") result '{}' ;;
	*) refuse host_key "the instance does not know what it was told" ;;
	esac ;;
*) refuse unsupported "there is no such call" ;;
esac
