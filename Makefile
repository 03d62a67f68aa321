# Entry points for developers and CI. `demo` and `test` do all their set-up and print what they do.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build build-tests demo test test-full test-crate test-rust test-features test-clients test-python test-python-torch test-ray test-e2e test-suites test-stores fuzz lint lint-docker lint-deploy test-docker check-cuda fmt arrows doc docs python-stubs dist wheels deny bench bench-memory bench-python bench-e2e benchmarks-doc golden golden-images golden-tables golden-tiffs golden-shards writers-parquet writers-text-arrow photos ci clean

CARGO ?= cargo
# Every debug build selects the whole workspace, and with it one set of features: with another, DataFusion and all above it would
# compile twice, ten minutes each (scripts/one-build.sh checks that). Benches are compiled by clippy alone: each would hold all of
# DataFusion.
ALL = --locked --workspace --tests
# Random cases of each property: a test with expensive cases takes a part of this number, one with cheap cases a multiple.
export PROPTEST_CASES ?= $(if $(FULL),768,32)
# Most tests wait for servers more than they compute.
export RUST_TEST_THREADS ?= $(shell echo $$((3 * $$(nproc))))
# Release binaries for benchmarks.
RELEASE = --release --locked -p pushdown-gateway -p pushdown-cli -p pushdown-bench -p transfer-learning -p pushdown-python

help: ## Print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## Install Debian packages and the Python environment for tests and demo
	@scripts/setup.sh

build: setup ## Build optimised programs in target/release
	@$(CARGO) build $(RELEASE)

demo: setup ## Compare plain GETs with pushdown on real photos, and run transfer learning over two links (FULL=1: all photos, all figures)
	@scripts/photos.sh large
	@scripts/photos.sh elpv
	@scripts/models.sh efficientnet_lite0
	@$(CARGO) build --locked --workspace --bin pushdown-gateway --bin pushdown --bin transfer-learning
	@DEMO_PROFILE=debug .venv/bin/python scripts/demo.py
	@DEMO_PROFILE=debug .venv/bin/python scripts/transfer_demo.py

test: test-rust test-clients test-python one-build ## Run the tests of every law, route and client, each in front of one store

test-full: setup ## Run every test: also each in front of every store (test-stores), with large models and files, many random cases, soaks, third-party S3 test suites, all feature sets, the links of the documentation, the images and the benchmark's harness
	@$(MAKE) --no-print-directory test-rust test-features test-clients test-suites test-stores test-python test-python-torch test-ray test-e2e doc test-docker FULL=1

# Programs need Debian packages to be built, and nothing of Python: `.ci/run` does both at once.
.PHONY: setup-debian setup-models setup-python
setup-debian:
	@scripts/setup.sh debian

setup-models: setup
	@scripts/models.sh test

setup-python: setup
	@scripts/setup.sh python

# The second command builds the native module of the Python package. Each program of benchmarks would hold all of DataFusion.
build-tests: setup-debian ## Build everything that tests run
	@$(CARGO) test $(ALL) --no-run
	@$(CARGO) build --locked --workspace --quiet --lib --bin pushdown-stubs

# `cargo test` only runs what is built. Ceph and Garage have `test-stores`.
test-rust: setup-models build-tests ## Run unit, property, golden and integration tests (FULL=1: also those that make test-full runs)
	@if [ -n "$(FULL)" ]; then scripts/models.sh all && scripts/photos.sh all && scripts/setup.sh stores; fi
	@$(CARGO) test --locked --workspace --tests --no-fail-fast $(if $(FULL),-- --include-ignored --skip ceph --skip garage)
	@$(CARGO) test --locked --workspace --doc

test-crate: ## Test one crate alone, in seconds after a change (CRATE=core|image|model|plan|shard|wire|table|exec|s3|client|cli|gateway)
	@$(CARGO) test --locked -p pushdown-$(or $(CRATE),image)

# Not the integration tests of the gateway and the command line: they would replace their binaries, with which other tests run.
test-features: ## Compile gateway, command line and client without models and tables (FULL=1: also test them so, and each feature alone)
	@$(CARGO) check --locked -p pushdown-gateway -p pushdown-cli --no-default-features
	@if [ -n "$(FULL)" ]; then \
	  $(CARGO) check --locked -p pushdown-gateway --no-default-features --features models && \
	  $(CARGO) check --locked -p pushdown-gateway --no-default-features --features tables && \
	  $(CARGO) check --locked -p pushdown-gateway --no-default-features --features embedded-store && \
	  $(CARGO) test --locked -p pushdown-gateway --no-default-features --lib && \
	  $(CARGO) test $(ALL) --no-run --quiet && \
	  $(CARGO) test --locked -p pushdown-client --no-default-features --test it; \
	fi

test-clients: setup-models build-tests ## Test boto3, aws-cli, s3fs, pyarrow, obstore and s3torchconnector against the gateway, in forward and re-sign mode (FULL=1: in front of every store)
	@.venv/bin/python -m pytest -q -n $$((2 * $$(nproc))) --dist worksteal $(if $(FULL),--full) tests/clients

test-python: setup-models setup-python build-tests ## Check the types of the Python package, and test it with numpy, pyarrow, polars, duckdb and pandas against the gateway
	@scripts/python.sh python python/scripts/generate_ops.py --check
	@target/debug/pushdown-stubs target/debug/lib_native.so | diff -u python/python/pushdown/_native.pyi -
	@MYPYPATH=python/python scripts/python.sh stubtest pushdown._native --mypy-config-file python/pyproject.toml --allowlist python/tests/stubtest-allowlist.txt
	@scripts/python.sh ruff check --quiet --config python/pyproject.toml python examples/pytorch examples/ray
	@scripts/python.sh mypy --config-file python/pyproject.toml --no-error-summary python/python/pushdown --exclude "/(torch|ray)/"
	@scripts/python.sh python -m pytest -c python/pyproject.toml -q python/tests/unit
	@scripts/python.sh python -m pytest -c python/pyproject.toml -q -n $$((2 * $$(nproc))) --dist loadfile $(if $(FULL),--full) python/tests/gateway

test-python-torch: setup ## Check the types and test the package's loader and data sets with PyTorch, and train the example (5 GB of wheels)
	@scripts/setup.sh python-torch
	@$(CARGO) build --locked --workspace --quiet
	@VENV=.venv-python-torch scripts/python.sh mypy --config-file python/pyproject.toml --no-error-summary python/python/pushdown examples/pytorch/train.py --exclude /ray/
	@VENV=.venv-python-torch scripts/python.sh pyright -p python/pyproject.toml
	@VENV=.venv-python-torch scripts/python.sh python -m pytest -c python/pyproject.toml -q python/tests/torch

test-ray: setup ## Check the types and test the package's data sets and loaders with a Ray of four workers, and run its examples (6 GB of wheels)
	@scripts/setup.sh ray
	@scripts/models.sh efficientnet_lite0
	@$(CARGO) build --locked --workspace --quiet
	@VENV=.venv-ray scripts/python.sh mypy --config-file python/pyproject.toml --no-error-summary python/python/pushdown/ray examples/ray
	@VENV=.venv-ray scripts/python.sh python -m pytest -c python/pyproject.toml -q python/tests/ray

test-e2e: build-tests ## Test the harness of the end-to-end benchmark, and that docs/BENCHMARKS.md and docs/benchmarks are up to date
	@scripts/setup.sh e2e
	@$(CARGO) build --locked --workspace --quiet
	@DEMO_PROFILE=debug PYTHONPATH=bench:scripts:python/bench .venv-e2e/bin/python -m pytest -q bench/e2e/tests python/bench/loaders/tests

test-suites: setup ## Run third-party S3 test suites directly and through the gateway: no test may fail only through it (S3_TESTS=DIR: also ceph/s3-tests)
	@.venv/bin/python -m pytest -q tests/suites
	@S3_TESTS=$(S3_TESTS) scripts/s3-suites.sh

test-stores: setup build-tests ## Run the tests in front of Ceph and Garage: parity, cache, sessions, foreign clients, an epoch (STORES=ceph: one of them; the first time Garage is built)
	@scripts/setup.sh python
	@scripts/test-stores.sh $(STORES)

test-docker: ## Build the images, and run the benchmark, gateway and monitoring in a separate Docker engine, as root (an hour; half an hour once the images exist; not in CI)
	@if [ "$$(id -u)" -ne 0 ]; then echo "SKIPPED: test-docker, because an engine requires root"; else \
	  scripts/setup.sh containers && .venv/bin/python -m pytest -v -s --durations=0 tests/containers; fi

fuzz: setup ## Fuzz with libFuzzer (TARGET=parquet|arrow|text|png|bmp|gif|tiff|webp|jpeg|crop|auth|chunked|shard|sql, MAX_TIME=60 seconds); failures are in fuzz/artifacts
	@scripts/fuzz.sh $(or $(TARGET),parquet) $(or $(MAX_TIME),60)

lint: setup fmt-check arrows lint-docker ## Check formatting, clippy, dependencies, shell scripts, docker/
	@$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

lint-docker: ## Check shell scripts, Dockerfile, compose files and dashboard, without a Docker engine
	@scripts/lint-docker.sh

lint-deploy: ## Render deploy/kubernetes and check it against the schemas of Kubernetes, and check the unit of systemd (not in CI)
	@scripts/lint-deploy.sh

check-cuda: setup ## Compile the gateway with CUDA, and test its behaviour without a GPU (not in CI)
	@scripts/models.sh test
	@$(CARGO) clippy --locked -p pushdown -p pushdown-gateway --all-targets --features cuda -- -D warnings
	@$(CARGO) test --locked -p pushdown-gateway --features cuda --test it providers

.PHONY: fmt-check one-build
one-build:
	@scripts/one-build.sh

fmt-check:
	@$(CARGO) fmt --all --check

fmt: ## Format the Rust code
	@$(CARGO) fmt --all

arrows: ## Check the dependencies between workspace crates, and forbidden crates
	@scripts/arrows.sh

python-stubs: setup ## Write the generated parts of the Python package, after a change of a step or of its native module: the stub of the native module, and the functions of steps
	@scripts/setup.sh python
	@$(CARGO) build --locked --workspace --quiet
	@target/debug/pushdown-stubs target/debug/lib_native.so >python/python/pushdown/_native.pyi
	@scripts/python.sh python python/scripts/generate_ops.py

docs: ## Write docs/CONFIGURATION.md and docs/METRICS.md from the tables in the code, after a change of a setting or a metric
	@UPDATE_DOCS=1 $(CARGO) test --locked --workspace --test it -- reference

dist: ## Build the release archive of this machine into dist/, and try it in an empty folder
	@scripts/dist.sh

wheels: ## Build the Python wheels of client and gateway into dist/wheels, and try them in an empty environment
	@scripts/wheels.sh

doc: ## Check the documentation in the code and its links
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

deny: ## Check licences, advisories and sources of all dependencies (installs cargo-deny if missing)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	@$(CARGO) deny check

bench: ## Compare with libjpeg-turbo, Pillow, OpenCV, torchvision and nginx (PEERS=torch installs torchvision, 5 GB)
	@scripts/bench.sh
	@$(CARGO) bench --locked -p pushdown-bench
	@$(CARGO) bench --locked -p pushdown-gateway --bench cache --bench resign

bench-memory: ## Measure peak memory with many large photos at once, and with large bodies
	@scripts/bench.sh memory

bench-python: ## Compare pushdown.torch.Loader with other data loaders in CPU time (5 GB of wheels; CHECK=1: fail if a target is missed)
	@scripts/bench-python.sh $(if $(CHECK),--check)

bench-e2e: ## Measure store, gateway and trainer over shaped links, as root, 25 minutes (SCENARIO=NAME: one, FULL=1: all, NO_SHAPING=1: without root)
	@scripts/e2e.sh run $(SCENARIO) $(if $(FULL),--full) $(if $(NO_SHAPING),--no-shaping) $(if $(CHECK),--check)

benchmarks-doc: ## Write docs/BENCHMARKS.md, its sections and its figures from docs/figures/e2e.json
	@scripts/e2e.sh document docs/figures/e2e.json docs/BENCHMARKS.md

photos: setup ## Fetch real photos for demo and benchmarks into .cache/photos
	@scripts/photos.sh all

golden: ## Regenerate the golden values with Pillow, torchvision and PyTorch (5 GB of wheels)
	@scripts/setup.sh golden
	@.venv-golden/bin/python scripts/golden.py

golden-images: ## Regenerate the damaged and unusual images with Pillow and cjpeg
	@scripts/setup.sh golden-images
	@.venv-golden-images/bin/python scripts/golden_images.py

golden-tables: ## Regenerate the golden tables with DuckDB and pyarrow
	@scripts/setup.sh golden-tables
	@.venv-golden-tables/bin/python scripts/golden_tables.py

writers-text-arrow: ## Regenerate the text and Arrow files of pandas, Polars, DuckDB, pyarrow, gzip, pigz, bgzip, zstd and pzstd, and their expected contents
	@scripts/setup.sh writers-text-arrow
	@.venv-writers-text-arrow/bin/python scripts/writers_text_arrow.py

golden-tiffs: ## Regenerate the golden TIFFs with Pillow, tifffile and imagecodecs
	@scripts/setup.sh golden-tiffs
	@.venv-golden-tiffs/bin/python scripts/golden_tiffs.py

golden-shards: ## Regenerate the golden tars and zips with Python, GNU tar and Info-ZIP
	@scripts/setup.sh golden-shards
	@python3 scripts/golden_shards.py

writers-parquet: ## Regenerate the Parquet files of pyarrow, DuckDB, Polars and fastparquet, and their expected contents
	@scripts/setup.sh writers-parquet
	@.venv-writers-parquet/bin/python scripts/writers_parquet.py

ci: ## Run everything that CI runs
	@.ci/run

clean: ## Remove all build outputs, caches and environments
	@rm -rf target .cache .venv .venv-* demo-sample.png dist bench/results
