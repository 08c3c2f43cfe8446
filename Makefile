# The commands of this repository. Each sets up what it is missing; `make help` lists them.

LISTEN ?= 127.0.0.1:8080
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
AFPA := $(TARGET_DIR)/release/afpa

# Passed to the benchmarks, e.g. make compare ARGS="--quick --servers afpa,nginx"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help docs run build static packages check test prebuilt test-fleet test-reach test-packages test-kernels compare bench bench-full lab site fuzz clean bench-fast-path bench-proxy bench-sites bench-cores bench-http3 bench-dns

help: ## list the targets
	@echo 'AFPA, a web accelerator that serves the working set from RAM'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: build site ## build it and serve the sample site (LISTEN=127.0.0.1:8080)
	@scripts/serve $(AFPA) $(LISTEN)

build: ## build the release program
	@scripts/setup build
	@scripts/cargo build --release --locked --package afpa

static: ## build the program without libraries of the system, for archive and image
	@scripts/setup build
	@packaging/static

packages: build static ## pack .deb, .rpm, archive and image into build/packages, with a bill of their parts
	@scripts/setup build packages
	@packaging/build

check: ## format, lints and the crates' own tests, within a minute: what to run while working
	@scripts/setup build test
	@scripts/test format scripts clippy inside

test: ## run every test (what CI runs)
	@scripts/setup build test packages kernels
	@scripts/test

prebuilt: ## make the eBPF objects for builds without clang anew, with the clang of bpf/prebuilt/clang-version
	@scripts/setup build test
	@AFPA_BPF_PREBUILT=renew scripts/cargo build --locked --package afpa-bpf

test-kernels: ## load and try the programs in Debian's stock kernels 6.1 and 6.12, in an emulator
	@scripts/setup build test kernels
	@scripts/test build kernels

test-fleet: ## ten minutes of faults in a fleet, as root, and its figures (ARGS="--seconds 60")
	@scripts/setup build test
	@scripts/test-fleet $(ARGS)

test-reach: build ## real clients before real servers, as root, ten minutes (ARGS="--servers node --clients curl")
	@scripts/test-reach $(ARGS)

test-packages: packages ## install the packages in fresh Debian roots and containers, as root, ten minutes
	@scripts/setup build packages test-packages
	@packaging/test

compare: lab ## measure it beside nginx and h2o (ARGS="--quick")
	@$(TARGET_DIR)/release/afpa-lab compare $(ARGS)

lab:
	@scripts/setup build bench
	@scripts/cargo build --release --locked --package afpa --example contexts --bin afpa
	@scripts/lab build --release --locked

bench: lab ## AFPA, peers and the papers' architectures, within ten minutes (ARGS="--servers afpa,nginx")
	@$(TARGET_DIR)/release/afpa-lab papers --quick $(ARGS)

bench-full: lab ## the papers' experiments with every server, as root, within an hour (ARGS="--within 30m")
	@$(TARGET_DIR)/release/afpa-lab debian13 || echo 'Without the servers of Debian 13.'
	@$(TARGET_DIR)/release/afpa-lab papers --full $(ARGS)

bench-fast-path: lab ## the fast path's figures, as root (ARGS="--quick")
	@scripts/cargo build --release --locked --package afpa-netlab
	@$(TARGET_DIR)/release/afpa-lab fast-path $(ARGS)

bench-proxy: lab ## measure the proxy beside HAProxy and nginx, as root, five minutes (ARGS="--quick")
	@$(TARGET_DIR)/release/afpa-lab proxy $(ARGS)

bench-sites: lab ## what ten thousand sites cost, beside nginx (ARGS="--shared --certificates 5000")
	@$(TARGET_DIR)/release/afpa-lab sites $(ARGS)

bench-cores: lab ## how rates grow with the cores of the server, as root (ARGS="--cores 1,2")
	@$(TARGET_DIR)/release/afpa-lab cores $(ARGS)

bench-http3: lab ## HTTP/3 beside nginx, HAProxy and Caddy, as root, seven minutes (ARGS="--quick")
	@$(TARGET_DIR)/release/afpa-lab debian13
	@$(TARGET_DIR)/release/afpa-lab http3 $(ARGS)

bench-dns: lab ## DNS before and beside NSD, Knot and BIND, as root, ten minutes (ARGS="--quick")
	@$(TARGET_DIR)/release/afpa-lab dns $(ARGS)

site: ## generate the sample site into site/generated
	@scripts/setup build
	@python3 site/generate

docs: ## build the site of the pages into build/site/html, with search, and follow its links
	@scripts/setup docs
	@docs/site/build

fuzz: ## fuzz one target for a minute (TARGET=name SECONDS=60), or each (TARGET=all)
	@scripts/fuzz '$(TARGET)' '$(or $(SECONDS),60)'

clean: ## remove everything that was built or generated
	@scripts/cargo clean --quiet
	rm -rf build site/generated fuzz/target
