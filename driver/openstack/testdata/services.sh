#!/usr/bin/env bash
# services.sh FOLDER COMMAND…: starts real OpenStack services, runs a command, and stops them. The services are Keystone,
# Glance, Placement, Neutron, Cinder with simulated storage, and Nova with two hosts with simulated guests: "large" with
# plenty of capacity and "small" with two vCPUs. The command signs in as the administrator, by OS_AUTH_URL, OS_USERNAME
# and so on. All files are in FOLDER, which the script creates and which must not exist; all services listen only on
# 127.0.0.77.
#
# It needs root and these packages of Debian 12: keystone nova-api nova-conductor nova-scheduler nova-compute
# placement-api glance-api neutron-server neutron-plugin-ml2 cinder-api cinder-scheduler cinder-volume rabbitmq-server
# mariadb-server python3-pymysql uwsgi-core uwsgi-plugin-python3
set -euo pipefail

(($# >= 2)) || { echo "usage: services.sh FOLDER COMMAND…" >&2; exit 2; }
[[ ! -e $1 ]] || { echo "services.sh: $1 is there already" >&2; exit 2; }
mkdir -p "$1"/{etc,log,locks,images,state,rabbit}
D=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
H=127.0.0.77
keystone=http://$H:5000/v3
password=administrator
export OS_AUTH_URL=$keystone OS_USERNAME=admin OS_PASSWORD=$password OS_PROJECT_NAME=admin OS_USER_DOMAIN_ID=default OS_PROJECT_DOMAIN_ID=default
unset OS_CLOUD OS_REGION_NAME OS_INTERFACE

for program in mariadbd rabbitmq-server uwsgi keystone-manage nova-api nova-compute placement-manage glance-api neutron-server cinder-volume; do
	command -v "$program" >/dev/null || [[ -x /usr/sbin/$program ]] || { echo "services.sh: $program is missing: see the packages at the top of this file" >&2; exit 1; }
done

# Each started process has its own group. The script stops them at its end, the last one first.
started=()
start() { # NAME COMMAND…
	setsid "${@:2}" >>"$D/log/$1.log" 2>&1 </dev/null &
	started=("$!" "${started[@]}")
}
stop() {
	local pid
	for pid in "${started[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
		for _ in {1..100}; do
			kill -0 -- "-$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$pid" 2>/dev/null || true
	done
	epmd -port 4377 -kill >/dev/null 2>&1 || true # Erlang leaves it running
}
trap stop EXIT
trap 'exit 1' INT TERM

until_it() { # SECONDS COMMAND…: waits until the command succeeds
	local deadline=$((SECONDS + $1))
	until "${@:2}" >/dev/null 2>&1; do
		((SECONDS < deadline)) || { echo "services.sh: after $1 seconds, still not: ${*:2}; see $D/log" >&2; exit 1; }
		sleep 0.2
	done
}
answers() { curl -s -o /dev/null -m 10 "http://$H:$1/"; }
took() { echo "services.sh: $1 after ${SECONDS} s"; }

database() { echo "connection = mysql+pymysql://openstack:openstack@$H:3377/$1"; }
sign_in() { # SECTION
	cat <<-END
		[$1]
		auth_type = password
		auth_url = $keystone
		www_authenticate_uri = $keystone
		username = admin
		password = $password
		project_name = admin
		user_domain_id = default
		project_domain_id = default
		region_name = RegionOne
	END
}

configure() {
	cat >"$D/etc/keystone.conf" <<-END
		[DEFAULT]
		log_file = $D/log/keystone.log
		[database]
		$(database keystone)
		[token]
		provider = fernet
		[fernet_tokens]
		key_repository = $D/etc/fernet
		[fernet_receipts]
		key_repository = $D/etc/fernet
		[credential]
		key_repository = $D/etc/credential
		[cache]
		enabled = false
	END
	cat >"$D/etc/placement.conf" <<-END
		[DEFAULT]
		log_file = $D/log/placement.log
		[placement_database]
		$(database placement)
		[api]
		auth_strategy = keystone
		$(sign_in keystone_authtoken)
	END
	cat >"$D/etc/glance.conf" <<-END
		[DEFAULT]
		bind_host = $H
		workers = 1
		[database]
		$(database glance)
		[glance_store]
		stores = file
		default_store = file
		filesystem_store_datadir = $D/images
		[paste_deploy]
		flavor = keystone
		config_file = /etc/glance/glance-api-paste.ini
		[oslo_concurrency]
		lock_path = $D/locks
		$(sign_in keystone_authtoken)
	END
	cat >"$D/etc/neutron.conf" <<-END
		[DEFAULT]
		bind_host = $H
		api_workers = 1
		rpc_workers = 1
		rpc_state_report_workers = 0
		core_plugin = ml2
		service_plugins =
		api_paste_config = /etc/neutron/api-paste.ini
		state_path = $D/state/neutron
		transport_url = rabbit://guest:guest@$H:5677/
		notify_nova_on_port_status_changes = false
		notify_nova_on_port_data_changes = false
		[database]
		$(database neutron)
		[oslo_concurrency]
		lock_path = $D/locks
		[ml2]
		type_drivers = local
		tenant_network_types = local
		mechanism_drivers = openvswitch
		$(sign_in keystone_authtoken)
	END
	cat >"$D/etc/cinder.conf" <<-END
		[DEFAULT]
		my_ip = $H
		host = storage
		osapi_volume_listen = $H
		osapi_volume_workers = 1
		state_path = $D/state/cinder
		transport_url = rabbit://guest:guest@$H:5677/
		auth_strategy = keystone
		api_paste_config = /etc/cinder/api-paste.ini
		resource_query_filters_file = /etc/cinder/resource_filters.json
		enabled_backends = pretended
		glance_api_servers = http://$H:9292
		[pretended]
		volume_driver = pretended.Storage
		volume_backend_name = pretended
		[database]
		$(database cinder)
		[coordination]
		backend_url = file://$D/state/cinder
		[oslo_concurrency]
		lock_path = $D/locks
		$(sign_in keystone_authtoken)
		service_token_roles = admin
		service_token_roles_required = true
		$(sign_in nova)
	END
	mkdir -p "$D/state/cinder"
	# Pages have five entries, so that a list of a few servers has several pages.
	cat >"$D/etc/nova.conf" <<-END
		[DEFAULT]
		my_ip = $H
		state_path = $D/state/nova
		transport_url = rabbit://guest:guest@$H:5677/
		enabled_apis = osapi_compute
		osapi_compute_listen = $H
		osapi_compute_workers = 1
		api_paste_config = /etc/nova/api-paste.ini
		vif_plugging_is_fatal = false
		vif_plugging_timeout = 0
		cpu_allocation_ratio = 1.0
		[api_database]
		$(database nova_api)
		[database]
		$(database nova)
		[api]
		auth_strategy = keystone
		max_limit = 5
		[conductor]
		workers = 1
		[scheduler]
		workers = 1
		[glance]
		api_servers = http://$H:9292
		[oslo_concurrency]
		lock_path = $D/locks
		[vnc]
		enabled = false
		$(sign_in keystone_authtoken)
		$(sign_in placement)
		$(sign_in neutron)
		$(sign_in cinder)
		$(sign_in service_user)
		send_service_user_token = true
	END
	local host
	for host in large:fake.FakeDriver small:fake.SmallFakeDriver; do
		mkdir -p "$D/state/${host%:*}"
		printf '[DEFAULT]\nhost = %s\ncompute_driver = %s\nstate_path = %s\n' "${host%:*}" "${host#*:}" "$D/state/${host%:*}" >"$D/etc/${host%:*}.conf"
	done
}

sql() { mariadb --no-defaults --socket="$D/mysql.sock" --user=root "$@"; }

start_database() {
	mariadb-install-db --no-defaults --user="$(id -un)" --auth-root-authentication-method=normal --skip-test-db --datadir="$D/mysql" >"$D/log/mysql.log"
	start mysql mariadbd --no-defaults --user="$(id -un)" --datadir="$D/mysql" --bind-address=$H --port=3377 --socket="$D/mysql.sock" \
		--pid-file="$D/mysql.pid" --skip-name-resolve --innodb-flush-log-at-trx-commit=0 --max-connections=400 --character-set-server=utf8mb3
	until_it 60 sql -e 'select 1'
}

start_messages() {
	touch "$D/rabbit/plugins" "$D/rabbit/rabbitmq.conf"
	export RABBITMQ_NODENAME=drover@localhost RABBITMQ_NODE_IP_ADDRESS=$H RABBITMQ_NODE_PORT=5677 RABBITMQ_DIST_PORT=25677 ERL_EPMD_PORT=4377 ERL_EPMD_ADDRESS=127.0.0.1
	export RABBITMQ_MNESIA_BASE=$D/rabbit/mnesia RABBITMQ_LOG_BASE=$D/log RABBITMQ_PID_FILE=$D/rabbit/pid RABBITMQ_CONFIG_FILE=$D/rabbit/rabbitmq
	export RABBITMQ_ENABLED_PLUGINS_FILE=$D/rabbit/plugins RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}"
	start rabbit env HOME="$D/rabbit" /usr/lib/rabbitmq/bin/rabbitmq-server
	until_it 120 bash -c "exec 3<>/dev/tcp/$H/5677"
}

# Creates the tables of all services, and the administrator.
initialise() {
	local name nova=(nova-manage --config-file "$D/etc/nova.conf")
	for name in keystone placement glance neutron cinder nova_api nova nova_cell0; do
		sql -e "create database $name"
	done
	sql -e "create user openstack@'127.%' identified by 'openstack'; grant all on *.* to openstack@'127.%'"
	{
		keystone-manage --config-file "$D/etc/keystone.conf" db_sync
		mkdir -p "$D"/etc/{fernet,credential}
		keystone-manage --config-file "$D/etc/keystone.conf" fernet_setup --keystone-user root --keystone-group root
		keystone-manage --config-file "$D/etc/keystone.conf" credential_setup --keystone-user root --keystone-group root
		keystone-manage --config-file "$D/etc/keystone.conf" bootstrap --bootstrap-password "$password" --bootstrap-region-id RegionOne \
			--bootstrap-public-url $keystone --bootstrap-internal-url $keystone --bootstrap-admin-url $keystone
		OS_PLACEMENT_CONFIG_DIR=$D/etc placement-manage --config-file "$D/etc/placement.conf" db sync
		glance-manage --config-file "$D/etc/glance.conf" db_sync
		neutron-db-manage --config-file "$D/etc/neutron.conf" upgrade heads
		cinder-manage --config-file "$D/etc/cinder.conf" db sync
	} >>"$D/log/initialise.log" 2>&1 &
	{
		"${nova[@]}" api_db sync
		"${nova[@]}" cell_v2 map_cell0 --database_connection "mysql+pymysql://openstack:openstack@$H:3377/nova_cell0"
		"${nova[@]}" db sync
		"${nova[@]}" cell_v2 create_cell --name=cell1
	} >>"$D/log/initialise-nova.log" 2>&1
	wait $!
}

start_services() {
	local uwsgi=(uwsgi --plugin python3 --master --die-on-term --lazy-apps --enable-threads --threads 8 --buffer-size 65535 --rem-header Content-Length) service
	start keystone env OS_KEYSTONE_CONFIG_FILES="$D/etc/keystone.conf" "${uwsgi[@]}" --processes 2 --http-socket $H:5000 --wsgi-file /usr/bin/keystone-wsgi-public
	start placement env OS_PLACEMENT_CONFIG_DIR="$D/etc" "${uwsgi[@]}" --processes 1 --http-socket $H:8778 --wsgi-file /usr/bin/placement-api
	start glance glance-api --config-file "$D/etc/glance.conf"
	start neutron neutron-server --config-file "$D/etc/neutron.conf"
	start cinder-api cinder-api --config-file "$D/etc/cinder.conf"
	start nova-api nova-api --config-file "$D/etc/nova.conf"
	for service in 5000 8778 9292 9696 8776 8774; do
		until_it 180 answers $service
	done
	catalogue
	start cinder-scheduler cinder-scheduler --config-file "$D/etc/cinder.conf"
	start cinder-volume env PYTHONPATH="$here" cinder-volume --config-file "$D/etc/cinder.conf"
	for service in conductor scheduler; do
		start nova-$service nova-$service --config-file "$D/etc/nova.conf"
	done
	for service in large small; do
		start nova-compute-$service nova-compute --config-file "$D/etc/nova.conf" --config-file "$D/etc/$service.conf"
	done
	# A host put into a zone before Placement knows it is never found there. Servers fail on a host that is not in a cell.
	until_it 120 count_is 2 placement.resource_providers
	until_it 120 count_is 2 nova.compute_nodes
	nova-manage --config-file "$D/etc/nova.conf" cell_v2 discover_hosts >>"$D/log/initialise-nova.log" 2>&1
	count_is 2 nova_api.host_mappings
}

count_is() { # N TABLE
	[[ $(sql --skip-column-names -e "select count(*) from $2") == "$1" ]]
}

# Registers the services in the catalogue.
catalogue() {
	python3 - <<-'END'
		import os, requests
		url, who = os.environ["OS_AUTH_URL"], {"name": os.environ["OS_USERNAME"], "password": os.environ["OS_PASSWORD"], "domain": {"id": "default"}}
		scope = {"project": {"name": os.environ["OS_PROJECT_NAME"], "domain": {"id": "default"}}}
		auth = {"auth": {"identity": {"methods": ["password"], "password": {"user": who}}, "scope": scope}}
		signed = requests.post(url + "/auth/tokens", json=auth)
		signed.raise_for_status()
		token = {"X-Auth-Token": signed.headers["X-Subject-Token"]}
		there = {s["type"] for s in requests.get(url + "/services", headers=token).json()["services"]}
		host = url.rsplit(":", 1)[0]
		for kind, place in {"compute": ":8774/v2.1", "placement": ":8778", "image": ":9292", "network": ":9696", "volumev3": ":8776/v3/$(project_id)s"}.items():
		    if kind not in there:
		        made = requests.post(url + "/services", headers=token, json={"service": {"type": kind, "name": kind}})
		        made.raise_for_status()
		        for interface in ("public", "internal", "admin"):
		            endpoint = {"service_id": made.json()["service"]["id"], "interface": interface, "region_id": "RegionOne", "url": host + place}
		            requests.post(url + "/endpoints", headers=token, json={"endpoint": endpoint}).raise_for_status()
		requests.get(host + ":9696/v2.0/networks", headers=token).raise_for_status()  # if ports are requested first, this Neutron fails from then on
	END
}

configure
start_database
start_messages
took "database and messages"
initialise
took "tables"
start_services
took "services"
"$@"
