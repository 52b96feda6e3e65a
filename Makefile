# Everything that is done with this repository, by name. `make` alone lists it.

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

# Everything is compiled as go run compiles it, so that nothing is compiled twice. Runners are static, since they go to any Linux.
# What is released is static as well, holds no path of this host, and is the same for the same source and version.
TRIM    =
GOBUILD = go build $(TRIM) -ldflags '-s -w -X main.version=$(VERSION)'
dist: TRIM = -trimpath
dist: export CGO_ENABLED = 0

# How a program for arm64 runs here; empty if it does not.
ARM64 = $(shell [ "$$(uname -m)" = aarch64 ] && command -v env || command -v qemu-aarch64-static || command -v qemu-aarch64)
RECORD_WORLD = $(1) -test.run '^TestRecordAWorld$$' -record $(2)
REPLAY_WORLD = go test -count=1 ./internal/simtest -run TestAWorldRecordedOnAnotherArchitecture -replay

.DEFAULT_GOAL := help
.PHONY: help build man test lint protos race simtest mutants replay-arch recordings e2e e2e-qemu e2e-openstack e2e-kubernetes chaos chaos-cloud containers bench bench-fleet bench-pack bench-streams fuzz check-all dist packages install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: runners ## build bin/drover, with the runners for instances of both architectures in it
	$(GOBUILD) -tags runners -o bin/drover ./cmd/drover

.PHONY: runners
runners:
	@mkdir -p cmd/drover/runners
	@for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GOBUILD) -o bin/runner-linux-$$arch ./cmd/drover-runner && \
		gzip -9nc bin/runner-linux-$$arch >cmd/drover/runners/linux-$$arch.gz || exit 1; \
	done

test: ## run the tests in short mode (SHORT= in full)
	go test $(SHORT) ./...

lint: ## check the format, what go vet finds, the layers, and that the documents say what the code says
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	go vet ./...
	go vet -tags e2e,chaos,qemu ./internal/cli ./cmd/... ./driver/ec2 ./driver/external ./driver/local ./internal/telemetry
	go vet -tags containers ./internal/runner
	go vet -tags qemu ./internal/remote
	go vet -tags openstack ./driver/openstack
	go vet -tags kubernetes ./internal/cli
	go vet -tags packages ./packaging
	go test .

protos: ## generate what is said to Kubernetes' autoscaler from its .proto files (Debian: protobuf-compiler)
	GOBIN=$(CURDIR)/bin go install google.golang.org/protobuf/cmd/protoc-gen-go
	GOBIN=$(CURDIR)/bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
	PATH=$(CURDIR)/bin:$$PATH protoc --go_out=. --go_opt=module=drover --go-grpc_out=. --go-grpc_opt=module=drover internal/externalgrpc/protos/*.proto

race: ## run the tests under the race detector, which needs a C compiler (RACE=packages)
	CGO_ENABLED=1 go test -race $(RACE)

simtest: ## run the engine through bad luck, and its long tests (SEEDS=how many, FIRST_SEED=from where)
	go test ./internal/simtest -v -run '^(TestE|TestAFleet|TestAWorldFull|TestWhatever)' -timeout 60m -args -seeds $(SEEDS) -first-seed $(FIRST_SEED)
	go test ./internal/engine -run '^Test(Scenarios|Steps|WhatIsRented|NothingBegins|TheEngineTakes)' -timeout 60m -args -long
	go test ./internal/simulate -run '^TestStreamsCost' -timeout 60m -args -long

mutants: ## break the engine on purpose, in ways that the worlds must find (MUTANTS=names, TURN=which five)
	go test ./internal/simtest -tags mutants -v -run TestMutants -timeout 60m -args -mutants '$(MUTANTS)' -turn '$(TURN)'

replay-arch: ## record a world with fused arithmetic and on arm64, where that can be, and replay it here
	@if grep -qw fma /proc/cpuinfo && [ "$$(go env GOARCH)" = amd64 ]; then \
		GOAMD64=v3 go test -c -o bin/sim-v3.test ./internal/simtest && \
		$(call RECORD_WORLD,bin/sim-v3.test,bin/v3.rec) && \
		$(REPLAY_WORLD) $(CURDIR)/bin/v3.rec; \
	else echo "skipped: fused arithmetic needs an amd64 processor with FMA"; fi
	@if [ -n "$(ARM64)" ]; then \
		$(MAKE) --no-print-directory bin/arm64.rec && \
		$(REPLAY_WORLD) $(CURDIR)/bin/arm64.rec; \
	else echo "skipped: arm64 needs such a processor, or qemu-user-static"; fi

recordings: build bin/arm64.rec ## make the recordings that tests replay anew, when decisions are meant to change
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
	go test -tags e2e -timeout 20m ./internal/cli ./cmd/... ./driver/ec2 ./driver/external ./driver/local ./internal/telemetry

# The checker of accessibility, for the test of the dashboard alone: Deque's axe-core (MPL-2.0), which is not kept here.
AXE        = axe-core-4.14.1
AXE_SHA512 = 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
bin/axe.min.js:
	@mkdir -p bin
	cd bin && npm pack --silent $(subst core-,core@,$(AXE)) && echo '$(AXE_SHA512)  $(AXE).tgz' | sha512sum --check --quiet
	tar -xzOf bin/$(AXE).tgz package/axe.min.js >$@.part && mv $@.part $@

chaos: ## have real processes killed, stopped and cut off at random (CHAOS_TIME=how long, SEED=what luck)
	go test -tags chaos -run '^TestChaos$$' -count=1 -v -timeout 2h ./internal/cli -args -chaos $(CHAOS_TIME) -seed $(SEED)

chaos-cloud: ## kill controllers on a cloud of real OpenSSH servers that misbehaves, and compare the bill (CHAOS_SEEDS=how many, SEED=the first)
	go test -tags chaos -run '^TestChaosCloud$$' -count=1 -v -timeout 2h ./internal/cli -args -seeds $(CHAOS_SEEDS) -seed $(SEED)

containers: ## run attempts under real docker and podman, as root, against a registry that it starts (Debian: see CONTRIBUTING.md)
	CGO_ENABLED=0 go test -tags containers -count=1 -timeout 10m -v -run TestContainers ./internal/runner

e2e-qemu: ## have the example's driver make real virtual machines, and a root file system grow in one (Debian: see CONTRIBUTING.md)
	examples/drivers/qemu-image.sh bin/qemu
	QEMU_IMAGE=$(CURDIR)/bin/qemu go test -tags qemu -count=1 -timeout 20m -v -run TestQEMU ./internal/cli
	go test -tags qemu -count=1 -timeout 20m -v -run TestGrowScriptOnAVM ./internal/remote

e2e-openstack: ## run the driver of OpenStack against the real services, as root (Debian 12: see driver/openstack/testdata/services.sh)
	rm -rf bin/openstack
	driver/openstack/testdata/services.sh bin/openstack go test -tags openstack -count=1 -timeout 40m -v -run TestRealServices ./driver/openstack

e2e-kubernetes: ## run a real control plane and the cluster-autoscaler that CLUSTER_AUTOSCALER names (built once into CONTROL_PLANE)
	@if [ -z "$$CLUSTER_AUTOSCALER" ]; then echo "skipped: CLUSTER_AUTOSCALER names no cluster-autoscaler"; else \
		internal/cli/testdata/kubernetes/build.sh $(CONTROL_PLANE) && \
		KUBERNETES_BIN=$(CONTROL_PLANE)/bin go test -tags kubernetes -count=1 -timeout 30m -v -run TestARealCluster ./internal/cli; fi

bench: build ## measure the built program, then its hot paths (BENCHFLAGS=of drover-bench, BENCH=pattern)
	go run ./cmd/drover-bench -drover bin/drover $(BENCHFLAGS)
	go test -run TestAnIdleConnectionCostsLittle -count=1 -v ./internal/remote
	go test -run '^$$' -bench '$(BENCH)' -benchtime 0.5s ./internal/...

bench-fleet: ## measure dispatching to a hundred instances within one process, beside a peer's figures
	go run ./cmd/drover-bench-fleet

bench-pack: ## measure plans of inputs that others were measured with (PEERS=folder of the jobs and types, DATA=folder of EC2's types)
	go test -count=1 ./internal/pack -run '^TestFigures$$' -v -args -figures $(if $(PEERS),-peers $(abspath $(PEERS))) $(if $(DATA),-data $(abspath $(DATA)))

bench-streams: ## simulate streams of jobs under each policy (STREAMS=flags of the test: -seeds 5 -jobs 4000 -kinds dense -sharing user)
	go test -count=1 ./internal/simulate -run '^TestStreams$$' -timeout 2h -v -args -streams $(STREAMS)

fuzz: ## fuzz each target for a while (FUZZTIME=how long)
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep ^Fuzz); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$package || exit 1; \
		done; \
	done

check-all: SHORT =
check-all: lint test race simtest mutants replay-arch e2e chaos chaos-cloud containers packages e2e-qemu e2e-openstack e2e-kubernetes fuzz bench bench-fleet bench-pack ## all of these

dist: man ## make what is released: static binaries, deb, rpm, OCI image and SBOM, in bin/dist (PLATFORMS=which; needs podman)
	VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' packaging/dist.sh

packages: ## install the deb in a container with systemd, and use it over TLS; start the image; as root (Debian: see CONTRIBUTING.md)
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

clean: ## take away what was built
	rm -rf bin
