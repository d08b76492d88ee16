# Everything that README promises. No target installs anything outside this checkout, but
# `make test` as root, which installs the Debian packages that some tests need. Go, where it is
# installed, keeps its downloads in its own caches.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -path '*/catalogue/*.toml') Cargo.toml Cargo.lock
# Programs that run as separate processes, beside the Python package.
PROGRAMS := blklab-confine blklab-disk blklab-guest blklab-replay
PROGRAM_DIR := python/blklab/bin
# Real fio as the reference for job files and output; Chromium, driven by its driver, to look at the report; PostgreSQL
# as a store; programs that are workloads; a virtual machine; the wall around guests; a tracer of opened files; an SSH server; a counter of instructions; the fuzzer's C++; the rest builds a kernel. Each is the command, with its package after a colon if the names differ.
TEST_PACKAGES := fio bwrap:bubblewrap blkparse:blktrace chromium chromedriver:chromium-driver pg_ctlcluster:postgresql hdparm dbench sysbench mariadbd:mariadb-server-core mariadb:mariadb-client-core qemu-system-x86_64:qemu-system-x86 busybox:busybox-static mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs mkfs.f2fs:f2fs-tools cpio depmod:kmod udevadm:udev sshd:openssh-server strace valgrind g++ gcc make flex bison bc patch xz:xz-utils

# Plotly's bundle of scatter and bar charts, only in npm's registry; its version and checksum are in package-lock.json.
# Without it the pages hold all of Plotly, from the Python package.
BUNDLE := python/blklab/report/bundle
PLOTLY := $(BUNDLE)/node_modules/plotly.js-basic-dist-min/plotly-basic.min.js
NO_BUNDLE := reports will have 5.2 MB each, not 1.5: the small bundle of Plotly

# A client of TPC-C, not in Debian; its version and checksums are in its module here.
GO_TPC := tests/tools/go-tpc
GO_TPC_SKIPPED := not built: the tests of TPC-C will be skipped

# LLVM's fuzzer with Python's coverage, for Python 3.11 to 3.13; without a wheel, the targets of
# Python are skipped. Rust's comes with the crate that fuzz/Cargo.toml pins.
ATHERIS := atheris==3.0.0
# Seconds for each target in `make fuzz`, and in `make test`.
FUZZ_SECONDS ?= 60
FUZZ_SECONDS_TEST ?= 1
# Inputs of all targets and calls of `make fuzz-long` together.
FUZZ_INPUTS ?= 100000000

# Makes all mutants of some kinds; the files, and the unit tests that must find the mutants.
CARGO_MUTANTS_VERSION := 27.1.0
CARGO_MUTANTS := target/tools/bin/cargo-mutants
MUTANTS_FILES ?= crates/blklab-core/src/scheduler/**/*.rs
MUTANTS_TESTS ?= scheduler

# File systems in which `make verify` has files.
FILE_SYSTEMS := ext4 xfs

# The commit with which `make bench` compares the simulator's speed.
BENCH_BASE ?= HEAD~1

PLUGIN_TARGET := wasm32-unknown-unknown

# The seed of the random inputs of `make test`, and how many others `make properties` tries.
SEED ?= 1
ROUNDS ?= 20

# Merges the counts of an instrumented core; an optional part of the compiler.
PROFDATA = $(wildcard $(shell rustc --print sysroot)/lib/rustlib/*/bin/llvm-profdata)
NO_PROFDATA := built without a profile, which makes it slower: rustup component add llvm-tools

.PHONY: help compare setup test test-packages check test-rust test-python properties fuzz fuzz-test fuzz-long mutants mutants-all docs verify validate golden soak pgo bench wheel clean

help:  ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

compare: setup  ## Set up, then compare schedulers on two modelled disks
	$(BIN)/blklab compare

setup: $(VENV)/.built  ## Virtual environment in .venv, Rust core and programs built into it

$(VENV)/.created: pyproject.toml
	@command -v cargo >/dev/null || { echo "blklab needs Rust 1.88 or newer; install it: https://rustup.rs (or: apt-get install rustup && rustup default stable)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "blklab needs Python 3.11 or newer as $(PYTHON); set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module is missing: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check 'maturin==1.16.0'
	@touch $@

$(PROGRAM_DIR)/.built: $(RUST_SOURCES)
	cargo build --quiet --release $(PROGRAMS:%=--package %)
	@mkdir -p $(PROGRAM_DIR)
	@# Moved, not copied, into place: a running program keeps its file.
	@for p in $(PROGRAMS); do cp $${CARGO_TARGET_DIR:-target}/release/$$p $(PROGRAM_DIR)/.$$p && mv $(PROGRAM_DIR)/.$$p $(PROGRAM_DIR)/$$p; done
	@touch $@

# Stamped, since npm gives files the date of their packing; a failed download is tried again the next time.
$(PLOTLY): $(BUNDLE)/package-lock.json
	@if ! command -v npm >/dev/null; then echo "$(NO_BUNDLE) needs npm"; \
	elif timeout 120 npm ci --prefix $(BUNDLE) --ignore-scripts --no-audit --no-fund --fetch-retries=0 --silent; then touch $@; \
	else echo "$(NO_BUNDLE) could not be fetched; the reason: npm ci --prefix $(BUNDLE)"; fi

$(VENV)/.built: $(VENV)/.created $(RUST_SOURCES) $(PROGRAM_DIR)/.built | $(PLOTLY)
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@rm -f $(VENV)/.pgo
	@touch $@

# By pip: maturin would build the core a second time.
$(VENV)/.dev: $(VENV)/.built
	$(BIN)/pip install --quiet --disable-pip-version-check 'blklab[dev]'
	@touch $@

test: test-packages check test-rust test-python fuzz-test validate docs  ## Formatting, lints, types, all tests, docs

test-packages:
	@missing=""; for p in $(TEST_PACKAGES); do command -v $${p%%:*} >/dev/null || missing="$$missing $${p##*:}"; done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	  else \
	    echo "some tests will be skipped; to run them: apt-get install$$missing"; \
	  fi; \
	fi
	@# Plug-ins are compiled for it.
	@if command -v rustup >/dev/null && ! rustup target list --installed 2>/dev/null | grep -q '^$(PLUGIN_TARGET)$$'; then \
	  timeout 180 rustup --quiet target add $(PLUGIN_TARGET) || echo "tests of plug-ins will be skipped; to run them: rustup target add $(PLUGIN_TARGET)"; \
	fi

check: $(VENV)/.dev  ## Formatting, lints, types
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

# The same random inputs in each run: a run of the tests judges a change, not today's luck.
test-rust:  ## The Rust tests
	PROPTEST_RNG_SEED=$(SEED) cargo test --quiet

properties:  ## The properties of the Rust tests, with the random inputs of ROUNDS fresh seeds (20)
	@cargo test --quiet --no-run
	@for round in $$(seq $(ROUNDS)); do \
	  seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	  PROPTEST_RNG_SEED=$$seed cargo test --quiet >target/properties.log 2>&1 \
	    || { cat target/properties.log; echo "again: make test-rust SEED=$$seed"; exit 1; }; \
	done

test-python: $(VENV)/.dev $(BIN)/go-tpc  ## The Python tests
	$(BIN)/pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder --durations 20 --durations-min 20

$(VENV)/.fuzz: $(VENV)/.dev
	@$(BIN)/pip install --quiet --disable-pip-version-check '$(ATHERIS)' || echo "no $(ATHERIS) for this Python: its targets will be left out"
	@touch $@

fuzz: $(VENV)/.fuzz  ## Fuzz every parser with coverage, FUZZ_SECONDS each (60)
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS)

fuzz-test: $(VENV)/.fuzz
	$(BIN)/python fuzz/run.py --seconds $(FUZZ_SECONDS_TEST)

fuzz-long: $(VENV)/.fuzz  ## Fuzz until all calls together have tried 10^8 inputs; keeps new inputs
	$(BIN)/python fuzz/run.py --inputs $(FUZZ_INPUTS) --keep --out docs/data/fuzz.json

mutants: $(VENV)/.dev  ## Plant bugs in a copy, one at a time: the tests must find each
	$(BIN)/python -m tests.mutants --out docs/data/mutants.json

$(CARGO_MUTANTS):
	cargo install --quiet --locked --root target/tools cargo-mutants@$(CARGO_MUTANTS_VERSION)

mutants-all: $(CARGO_MUTANTS)  ## All mutants of MUTANTS_FILES (the schedulers): hours; lists missed mutants
	CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false PROPTEST_MAX_SHRINK_ITERS=0 \
	  $(CARGO_MUTANTS) mutants --package blklab-core --file '$(MUTANTS_FILES)' --output target --cargo-arg=--lib -- $(MUTANTS_TESTS) \
	  || [ $$? = 2 ] # Some are missed.

# Built by the installed Go, without C; a failed build is tried again the next time.
$(BIN)/go-tpc: $(GO_TPC)/go.mod $(GO_TPC)/go.sum | $(VENV)/.created
	@if ! command -v go >/dev/null; then echo "go-tpc $(GO_TPC_SKIPPED); it needs Go 1.21: https://go.dev/dl"; \
	else \
	  cd $(GO_TPC) && GOTOOLCHAIN=local CGO_ENABLED=0 timeout 600 \
	    go build -mod=readonly -buildvcs=false -o $(CURDIR)/$@ github.com/pingcap/go-tpc/cmd/go-tpc \
	    || echo "go-tpc $(GO_TPC_SKIPPED)"; \
	fi

docs: $(VENV)/.dev  ## The documentation, links checked, in site/
	@# Not --quiet: --strict counts only printed warnings.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

verify: $(VENV)/.built  ## The simulator against the real kernel: the whole matrix
	$(BIN)/blklab kernel build
	$(BIN)/blklab verify --out docs/data/verify.json
	$(BIN)/blklab kernel build --config XFS_FS=y --config BTRFS_FS=y --config F2FS_FS=y --name file-systems
	$(BIN)/blklab verify $(FILE_SYSTEMS:%=--fs %) --kernel file-systems --out docs/data/verify-files.json

$(VENV)/.pgo: $(VENV)/.built benches/train.py
	@if [ -n "$(PROFDATA)" ]; then \
	  PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet --pgo && touch $@; \
	else echo "$(NO_PROFDATA)"; fi

validate: $(VENV)/.dev  ## Models against measurements: hard disks in BLKLAB_DRIVES, their queues and SSDs in BLKLAB_MEASURED, Linux 4.12.4 in BLKLAB_LINUX412, traces in BLKLAB_TRACES
	$(BIN)/python -m validation $(BLKLAB_DRIVES)
	$(BIN)/python -m validation.flash $(BLKLAB_MEASURED)
	$(BIN)/python -m validation.queueing $(BLKLAB_MEASURED)
	$(BIN)/python -m validation.linux412 $(BLKLAB_LINUX412)
	$(BIN)/python -m validation.traces $(BLKLAB_TRACES)

golden: $(VENV)/.dev  ## Check that no result of the simulator has changed, by stored hashes
	$(BIN)/python -m tests.golden

soak: $(VENV)/.dev  ## 2,000 random sequences of events on a machine: nothing may be lost
	@test "$$(id -u)" = 0 || { echo "make soak needs root, for loop devices and namespaces" >&2; exit 1; }
	$(BIN)/python -m tests.machine_soak 4 --virtual --out docs/data/soak-virtual.json
	$(BIN)/python -m tests.machine_soak 2000 --kept docs/data/soak-batches.jsonl --out docs/data/soak.json
	BLKLAB_HOSTILE_JOBS=2000 BLKLAB_HOSTILE_OUT=docs/data/hostile.json $(BIN)/pytest tests/test_live_confined.py

pgo: $(VENV)/.pgo  ## Rebuild the core with profile-guided optimization: faster

bench: $(VENV)/.pgo  ## Speed and size: core, whole processes, kernel and live rig
	cargo bench --quiet
	$(BIN)/python benches/against.py --base $(BENCH_BASE)
	$(BIN)/python benches/instructions.py --base $(BENCH_BASE)
	$(BIN)/python benches/whole_process.py
	$(BIN)/python benches/processes.py
	$(BIN)/python benches/readers.py
	$(BIN)/python benches/plugins.py
	$(BIN)/blklab kernel build
	$(BIN)/python benches/kernel_rig.py
	@test "$$(id -u)" = 0 || echo "not the live rig's: they need root, for a loop device"
	@test "$$(id -u)" != 0 || $(BIN)/python benches/live_rig.py
	@test "$$(id -u)" != 0 || $(BIN)/python benches/recording.py
	@test "$$(id -u)" != 0 || $(BIN)/python benches/watch.py

wheel: $(PROGRAM_DIR)/.built $(PLOTLY)  ## An installable wheel in dist/, tried in a clean environment
	@test -x $(BIN)/maturin || $(MAKE) $(VENV)/.created
	@[ -n "$(PROFDATA)" ] || echo "$(NO_PROFDATA)"
	$(BIN)/maturin build --release --quiet --out dist $(if $(PROFDATA),--pgo)
	rm -rf dist/.try && $(PYTHON) -m venv dist/.try
	dist/.try/bin/pip install --quiet --disable-pip-version-check dist/blklab-*.whl
	dist/.try/bin/blklab schedulers
	dist/.try/bin/python -c 'from blklab.base import binaries; print(*map(binaries.find, binaries.NAMES))'
	rm -rf dist/.try

clean:  ## Remove what was built
	rm -rf $(VENV) target dist site $(PROGRAM_DIR) $(BUNDLE)/node_modules
