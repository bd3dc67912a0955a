# make demo    Spangate on http://127.0.0.1:8080 in front of two demo origins, until Ctrl-C
# make test    every test, the instruction count of a request, and what an SDK sends through the collector
# make bench   requests/s, latency, CPU and memory beside HAProxy and nginx (BENCH="--case 50B-c64")
# make docs    the API documentation, in target/doc
# make fuzz    each fuzz target for FUZZ_SECONDS
# make lint    formatting, clippy, and cargo-deny where it is installed

# User instructions that one plain request may take, keep-alive, without and with an access log. The gate of `make test`:
# lower it whenever the data path gets cheaper.
INSTRUCTIONS_MAX := 7880
INSTRUCTIONS_MAX_LOG := 12500
# The same with the filter opentelemetry and 18 spans, which a receiver takes: all, those that the outcome keeps, and all by
# contexts. What exporting takes depends a little on the time that passes.
INSTRUCTIONS_MAX_SPANS := 49000
INSTRUCTIONS_MAX_OUTCOME := 33500
INSTRUCTIONS_MAX_CONTEXTS := 74000

FUZZ_SECONDS ?= 30
BENCH ?=
CARGO ?= cargo
PROGRAM := target/release/spangate
BENCH_PROGRAM := target/release/spangate-bench

.PHONY: all build demo test gate bench docs fuzz lint

all: build

build:
	$(CARGO) build --release -p spangate -p spangate-bench

# exec: Ctrl-C ends in the program itself, which then exits with 0.
demo: build
	@exec $(BENCH_PROGRAM) demo

test: gate
	$(CARGO) test --workspace
	@tools/interop/run $(PROGRAM)

gate: build
	@tools/system-packages valgrind
	$(BENCH_PROGRAM) instructions --max $(INSTRUCTIONS_MAX)
	$(BENCH_PROGRAM) instructions --log --max $(INSTRUCTIONS_MAX_LOG)
	$(BENCH_PROGRAM) instructions --tracing sa --max $(INSTRUCTIONS_MAX_SPANS)
	$(BENCH_PROGRAM) instructions --tracing sa --level outcome --max $(INSTRUCTIONS_MAX_OUTCOME)
	$(BENCH_PROGRAM) instructions --tracing ctx --max $(INSTRUCTIONS_MAX_CONTEXTS)

bench: build
	@tools/system-packages wrk
	$(BENCH_PROGRAM) http $(BENCH)

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# cargo-fuzz needs a nightly toolchain: `rustup toolchain install nightly && cargo install cargo-fuzz`.
fuzz:
	@test -d fuzz || { echo "there is no folder fuzz" >&2; exit 1; }
	@for target in $$($(CARGO) fuzz list); do \
		$(CARGO) +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; else echo "cargo-deny is not installed: skipped"; fi
