# make demo    the proxy on http://127.0.0.1:8080 and https://127.0.0.1:8443 in front of two demo origins, with a collector, a
#              light load, and the dashboard on http://127.0.0.1:8404, until Ctrl-C (PORT=9000 takes 9000 to 9003, LOAD=0 sends
#              no load)
# make build   all of Spangate as it ships: target/release/spangate, its symbols in target/release/spangate.debug
# make test    every test, the instruction count of a request, what an SDK sends through the collector, and the dashboard in a
#              browser
# make gate    the instruction count alone
# make bench   requests/s, latency, CPU and memory beside HAProxy and nginx (BENCH="--case 50B-c64")
# make docs    the API documentation, in target/doc
# make fuzz    each fuzz target for FUZZ_SECONDS
# make package  the Debian package, in target/debian
# make lint    formatting, clippy with every set of features that ships, the API documentation, and
#              cargo-deny where it is installed

# The gate: instructions of the program's own, not those of the C library, that one request may take, keep-alive; plain, and with an
# access log. They are counted in the proxy alone, whose code is generated as that of the release, by the compiler of
# rust-toolchain.toml. These six are provisional: what the engine takes today, not what it shall take. Lower them whenever
# the data path gets cheaper.
INSTRUCTIONS := 8840
INSTRUCTIONS_LOG := 13150
# With 64 connections that send at the same time: many of them are served in one round of the event loop.
INSTRUCTIONS_64 := 8415
# The same with the filter opentelemetry and 18 spans, to where a worker hands them over: all, those that the outcome keeps, and all
# by contexts.
INSTRUCTIONS_SPANS := 47040
INSTRUCTIONS_OUTCOME := 32170
INSTRUCTIONS_CONTEXTS := 76590
# Per cent above these that pass: what depends on time, and on the length of numbers in log lines. Other compilers inline
# otherwise.
GATE_COMPILER := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
GATE_MARGIN = $(if $(findstring rustc $(GATE_COMPILER) ,$(shell rustc --version)),3,15)

FUZZ_SECONDS ?= 30
BENCH ?=
PORT ?=
LOAD ?=
CARGO ?= cargo
PROGRAM := target/release/spangate
BENCH_PROGRAM := target/release/spangate-bench
# The program that the gate counts, and the one that sends it requests. The latter is not counted: any build of it will do.
GATE_SUBJECT := target/proxy/spangate
GATE_BENCH := target/debug/spangate-bench
COUNT = $(GATE_BENCH) instructions --subject $(GATE_SUBJECT) --margin $(GATE_MARGIN)

.PHONY: all build proxy demo test gate gate-subject gate-count bench docs fuzz package lint

all: build

build:
	$(CARGO) build --release -p spangate -p spangate-bench
	@tools/split-symbols $(PROGRAM)

# Incremental code has more units, which inline less of each other: the gate would count half as much again.
proxy:
	CARGO_INCREMENTAL=0 $(CARGO) build --profile proxy --no-default-features -p spangate -p spangate-bench

# exec: Ctrl-C ends in the program itself, which then exits with 0.
demo:
	CARGO_INCREMENTAL=0 $(CARGO) build --profile demo --no-default-features --features spangate/export -p spangate -p spangate-bench
	@exec target/demo/spangate-bench demo $(if $(PORT),--port $(PORT)) $(if $(LOAD),--load $(LOAD))

test:
	@CARGO="$(CARGO)" tools/test

gate-subject:
	CARGO_INCREMENTAL=0 $(CARGO) build --profile proxy --no-default-features -p spangate

# The gate with the bench as it was built last (tools/test).
gate-count: gate-subject
	@tools/system-packages valgrind
	@echo "Limits: $(GATE_MARGIN) % above what rustc $(GATE_COMPILER) makes of it."
	$(COUNT) --max $(INSTRUCTIONS)
	$(COUNT) --log --max $(INSTRUCTIONS_LOG)
	$(COUNT) --connections 64 --requests 3200 --max $(INSTRUCTIONS_64)
	$(COUNT) --tracing sa --max $(INSTRUCTIONS_SPANS)
	$(COUNT) --tracing sa --level outcome --max $(INSTRUCTIONS_OUTCOME)
	$(COUNT) --tracing ctx --max $(INSTRUCTIONS_CONTEXTS)

gate:
	$(CARGO) build --no-default-features -p spangate-bench
	@$(MAKE) --no-print-directory gate-count

bench: build
	@tools/system-packages wrk
	$(BENCH_PROGRAM) http $(BENCH)

# With --examples cargo selects the features of dependencies that clippy with --all-targets had, and does not check them again.
docs:
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --workspace --no-deps --document-private-items --lib --bins --examples

# cargo-fuzz needs a nightly toolchain: `rustup toolchain install nightly && cargo install cargo-fuzz`.
fuzz:
	@test -d fuzz || { echo "there is no folder fuzz" >&2; exit 1; }
	@for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

package:
	@CARGO="$(CARGO)" tools/package

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(MAKE) --no-print-directory docs
	$(CARGO) clippy -p spangate -p spangate-bench --no-default-features -- -D warnings
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; else echo "cargo-deny is not installed: skipped"; fi
