# The targets for working on this repository. `make` alone lists them.

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
PREFIX     ?= /usr/local
SEEDS      ?= 2000
FIRST_SEED ?= 1
MUTANTS    ?=
TURN       ?=
FUZZTIME   ?= 10s
BENCH      ?= .
BENCHFLAGS ?=
PEERS      ?=
DATA       ?=
RACE       ?= ./...
SHORT      ?= -short
CHAOS_TIME ?= 3m
CHAOS_SEEDS ?= 3
SEED       ?= 0
PLATFORMS  ?=
STREAMS    ?=
CONTROL_PLANE ?= $(HOME)/.cache/drover/control-plane

# Builds use the flags of go run, so that nothing is compiled twice. Runners are static, since they run on any Linux. Releases are
# static as well, contain no path of this host, and are identical for the same source and version.
TRIM    =
GOBUILD = go build $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)'
dist: TRIM = -trimpath
dist: export CGO_ENABLED = 0

# The command that runs an arm64 program on this host; empty if there is none.
ARM64 = $(shell [ "$$(uname -m)" = aarch64 ] && command -v env || command -v qemu-aarch64-static || command -v qemu-aarch64)
RECORD_WORLD = $(1) -test.run '^TestRecordAWorld$$' -record $(2)
REPLAY_WORLD = go test -count=1 ./internal/simtest -run TestAWorldRecordedOnAnotherArchitecture -replay

.DEFAULT_GOAL := help
.PHONY: help build man test lint protos race simtest mutants replay-arch recordings e2e e2e-qemu e2e-openstack e2e-kubernetes chaos chaos-cloud containers bench bench-fleet bench-pack bench-streams fuzz check-all dist packages install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: runners ## build bin/drover, including the runners for both architectures
	$(GOBUILD) -tags runners -o bin/drover ./cmd/drover

.PHONY: runners
runners:
	@mkdir -p cmd/drover/runners
	@for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GOBUILD) -o bin/runner-linux-$$arch ./cmd/drover-runner && \
		gzip -9nc bin/runner-linux-$$arch >cmd/drover/runners/linux-$$arch.gz || exit 1; \
	done

test: ## run the tests in short mode (SHORT= runs them in full)
	go test $(SHORT) ./...

lint: ## check formatting, go vet, the layers, and that the documents agree with the code
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags e2e,chaos,qemu ./internal/cli ./cmd/... ./driver/ec2 ./driver/external ./driver/local ./internal/telemetry
	go vet -tags containers ./internal/runner
	go vet -tags qemu ./internal/remote
	go vet -tags openstack ./driver/openstack
	go vet -tags kubernetes ./internal/cli
	go vet -tags packages ./packaging
	go test .

protos: ## generate the autoscaler's protocol from its .proto files (Debian: protobuf-compiler)
	GOBIN=$(CURDIR)/bin go install google.golang.org/protobuf/cmd/protoc-gen-go
	GOBIN=$(CURDIR)/bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
	PATH=$(CURDIR)/bin:$$PATH protoc --go_out=. --go_opt=module=drover --go-grpc_out=. --go-grpc_opt=module=drover internal/externalgrpc/protos/*.proto

race: ## run the tests under the race detector, which needs a C compiler (RACE=packages)
	CGO_ENABLED=1 go test -race $(RACE)

simtest: ## run the engine in random faulty worlds, and its long tests (SEEDS=how many, FIRST_SEED=the first)
	go test ./internal/simtest -v -run '^(TestE|TestAFleet|TestAWorldFull|TestWhatever)' -timeout 60m -args -seeds $(SEEDS) -first-seed $(FIRST_SEED)
	go test ./internal/engine -run '^Test(Scenarios|Steps|RentedInstances|JobsReported|EngineAccepts)' -timeout 60m -args -long
	go test ./internal/simulate -run '^TestStreamsCost' -timeout 60m -args -long

mutants: ## break the engine on purpose, which the worlds must detect (MUTANTS=names, TURN=which five)
	go test ./internal/simtest -tags mutants -v -run TestMutants -timeout 60m -args -mutants '$(MUTANTS)' -turn '$(TURN)'

replay-arch: ## record a world with fused arithmetic and on arm64, if possible, and replay it here
	@if grep -qw fma /proc/cpuinfo && [ "$$(go env GOARCH)" = amd64 ]; then \
		GOAMD64=v3 go test -c -o bin/sim-v3.test ./internal/simtest && \
		$(call RECORD_WORLD,bin/sim-v3.test,bin/v3.rec) && \
		$(REPLAY_WORLD) $(CURDIR)/bin/v3.rec; \
	else echo "skipped: fused arithmetic needs an amd64 processor with FMA"; fi
	@if [ -n "$(ARM64)" ]; then \
		$(MAKE) --no-print-directory bin/arm64.rec && \
		$(REPLAY_WORLD) $(CURDIR)/bin/arm64.rec; \
	else echo "skipped: arm64 needs such a processor, or qemu-user-static"; fi

recordings: build bin/arm64.rec ## remake the recordings that tests replay, after an intended change of decisions
	cp bin/arm64.rec internal/simtest/testdata/arm64.rec
	rm -rf bin/anew && XDG_STATE_HOME=bin/anew bin/drover run --out bin/anew examples/hello.yaml
	cp bin/anew/drover/recordings/run-*/00000001.jsonl.gz internal/simtest/testdata/hello.rec

.PHONY: bin/arm64.rec
bin/arm64.rec:
	@[ -n "$(ARM64)" ] || { echo "recording on arm64 needs such a processor, or qemu-user-static"; exit 1; }
	GOARCH=arm64 go test -c -o bin/sim-arm64.test ./internal/simtest
	$(call RECORD_WORLD,$(ARM64) bin/sim-arm64.test,$@)

e2e: ## run the real binary: real processes, real SSH, real kill -9; the dashboard in chromium, with axe-core from npm
	@$(MAKE) --no-print-directory bin/axe.min.js || echo "WARNING: the dashboard is not checked for accessibility: axe-core could not be fetched" >&2
	go test -tags e2e -timeout 30m ./internal/cli ./cmd/... ./driver/ec2 ./driver/external ./driver/local ./internal/telemetry

# Deque's accessibility checker axe-core (MPL-2.0), used only by the dashboard's test and not kept in this repository.
AXE        = axe-core-4.14.1
AXE_SHA512 = 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
bin/axe.min.js:
	@mkdir -p bin
	cd bin && npm pack --silent $(subst core-,core@,$(AXE)) && echo '$(AXE_SHA512)  $(AXE).tgz' | sha512sum --check --quiet
	tar -xzOf bin/$(AXE).tgz package/axe.min.js >$@.part && mv $@.part $@

chaos: ## kill, stop and disconnect real processes at random (CHAOS_TIME=how long, SEED=the seed)
	go test -tags chaos -run '^TestChaos$$' -count=1 -v -timeout 2h ./internal/cli -args -chaos $(CHAOS_TIME) -seed $(SEED)

chaos-cloud: ## kill controllers on a faulty cloud of real OpenSSH servers, and compare the bill (CHAOS_SEEDS=how many, SEED=the first)
	go test -tags chaos -run '^TestChaosCloud$$' -count=1 -v -timeout 2h ./internal/cli -args -seeds $(CHAOS_SEEDS) -seed $(SEED)

containers: ## run attempts under real docker and podman, as root, with a registry of its own (Debian: see CONTRIBUTING.md)
	CGO_ENABLED=0 go test -tags containers -count=1 -timeout 10m -v -run TestContainers ./internal/runner

e2e-qemu: ## create real virtual machines with the example's driver, and grow a root file system in one (Debian: see CONTRIBUTING.md)
	examples/drivers/qemu-image.sh bin/qemu
	QEMU_IMAGE=$(CURDIR)/bin/qemu go test -tags qemu -count=1 -timeout 20m -v -run TestQEMU ./internal/cli
	go test -tags qemu -count=1 -timeout 20m -v -run TestGrowScriptOnAVM ./internal/remote

e2e-openstack: ## run the OpenStack driver against the real services, as root (Debian 12: see driver/openstack/testdata/services.sh)
	rm -rf bin/openstack
	driver/openstack/testdata/services.sh bin/openstack go test -tags openstack -count=1 -timeout 40m -v -run TestRealServices ./driver/openstack

e2e-kubernetes: ## run a real control plane, built once into CONTROL_PLANE, and the cluster-autoscaler that CLUSTER_AUTOSCALER names
	@if [ -z "$$CLUSTER_AUTOSCALER" ]; then echo "skipped: CLUSTER_AUTOSCALER names no cluster-autoscaler"; else \
		internal/cli/testdata/kubernetes/build.sh $(CONTROL_PLANE) && \
		KUBERNETES_BIN=$(CONTROL_PLANE)/bin go test -tags kubernetes -count=1 -timeout 30m -v -run TestARealCluster ./internal/cli; fi

bench: build ## measure the built program, then its hot paths (BENCHFLAGS=flags of drover-bench, BENCH=pattern)
	go run ./cmd/drover-bench -drover bin/drover $(BENCHFLAGS)
	go test -run TestAnIdleConnectionCostsLittle -count=1 -v ./internal/remote
	go test -run '^$$' -bench '$(BENCH)' -benchtime 0.5s ./internal/...

bench-fleet: ## measure dispatching to a hundred instances within one process, beside Arvados' figures
	go run ./cmd/drover-bench-fleet

bench-pack: ## measure plans for inputs that other planners were measured with (PEERS=folder of the jobs and types, DATA=folder of EC2's types)
	go test -count=1 ./internal/pack -run '^TestFigures$$' -v -args -figures $(if $(PEERS),-peers $(abspath $(PEERS))) $(if $(DATA),-data $(abspath $(DATA)))

bench-streams: ## simulate streams of jobs under each policy (STREAMS=the test's flags, such as -seeds 5 -jobs 4000 -kinds dense -sharing user)
	go test -count=1 ./internal/simulate -run '^TestStreams$$' -timeout 2h -v -args -streams $(STREAMS)

fuzz: ## fuzz each target for a while (FUZZTIME=how long)
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep ^Fuzz); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package || exit 1; \
		done; \
	done

check-all: SHORT =
check-all: lint test race simtest mutants replay-arch e2e chaos chaos-cloud containers packages e2e-qemu e2e-openstack e2e-kubernetes fuzz bench bench-fleet bench-pack ## run all of these

dist: man ## build the release in bin/dist: static binaries, deb, rpm, OCI image and SBOM (PLATFORMS=which; needs podman)
	VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' packaging/dist.sh

packages: ## install the deb in a container with systemd, use it over TLS, and start the image, as root (Debian: see CONTRIBUTING.md)
packages: export CONTAINERS_CONF = $(CURDIR)/packaging/testdata/containers.conf
packages:
	$(MAKE) --no-print-directory dist PLATFORMS=linux/$$(go env GOHOSTARCH)
	[ -e bin/rootfs/etc/debian_version ] || { rm -rf bin/rootfs && \
		debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,ca-certificates,caddy,openssh-client bookworm bin/rootfs >bin/debootstrap.log || { tail bin/debootstrap.log; rm -rf bin/rootfs; exit 1; }; }
	go test -tags packages -count=1 -timeout 10m -v ./packaging -args -dist $(CURDIR)/bin/dist -rootfs $(CURDIR)/bin/rootfs

man: build ## write the man pages to bin/man
	bin/drover man bin/man

install: build man ## copy the binaries to PREFIX/bin, the man pages to PREFIX/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install bin/drover $(DESTDIR)$(PREFIX)/bin
	install -m 644 bin/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1

clean: ## remove everything that was built
	rm -rf bin
