# What people and CI run. `demo` and `test` do all their own set-up and say what they do.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-rust test-clients test-e2e s3-tests fuzz lint lint-docker docker-steps check-cuda fmt arrows doc deny bench bench-memory bench-e2e benchmarks-doc golden golden-images golden-tables golden-tiffs writers-parquet writers-text-arrow photos ci clean

CARGO ?= cargo
# Everything with one set of features, binaries for the clients' tests too, which benches bring: with another the
# dependencies would be compiled twice, for ten minutes. `--all-targets` would make test binaries of programs without tests.
ALL = --locked --workspace --tests --benches
# The same for what demo and benchmarks run.
RELEASE = --release --locked -p pushdown-gateway -p pushdown-client -p pushdown-bench

help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## Debian packages and the Python environment that tests and demo need
	@scripts/setup.sh

build: setup ## The programs, optimised, in target/release
	@$(CARGO) build $(RELEASE)

demo: setup ## Real photos read plainly and pushed down, and transfer learning over two links (FULL=1: all of it)
	@scripts/photos.sh large
	@scripts/photos.sh elpv
	@scripts/models.sh efficientnet_lite0
	@$(CARGO) build $(ALL)
	@DEMO_PROFILE=debug .venv/bin/python scripts/demo.py
	@DEMO_PROFILE=debug .venv/bin/python scripts/transfer_demo.py

test: setup test-rust test-clients test-e2e ## Every test

test-rust: setup ## Unit, property, golden and integration tests
	@scripts/models.sh
	@$(CARGO) test $(ALL)
	@$(CARGO) test --locked --workspace --doc

test-clients: setup ## boto3, aws-cli, s3fs and pyarrow against the gateway in front of two stores
	@$(CARGO) test $(ALL) --no-run --quiet
	@.venv/bin/python -m pytest -q tests/clients

test-e2e: ## The harness of the end-to-end benchmark: links, counters, statistics, and what it leaves behind
	@scripts/setup.sh e2e
	@$(CARGO) test $(ALL) --no-run --quiet
	@DEMO_PROFILE=debug PYTHONPATH=bench:scripts .venv-e2e/bin/python -m pytest -q bench/e2e/tests

s3-tests: ## The S3 compatibility tests, directly and through the gateway: nothing may be lost
	@scripts/s3-tests.sh

fuzz: setup ## Objects of any bytes, by libFuzzer (TARGET=parquet|arrow|text|png|bmp|gif|tiff|webp|jpeg, MAX_TIME=60 seconds)
	@scripts/fuzz.sh $(or $(TARGET),parquet) $(or $(MAX_TIME),60)

lint: setup fmt-check arrows doc lint-docker ## Formatting, clippy, dependency arrows, documentation, shell, docker/
	@$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

lint-docker: ## Shell scripts, Dockerfile, compose files and dashboard, as far as no Docker engine is needed
	@scripts/lint-docker.sh

docker-steps: ## The steps of the gateway's image in clean Debian roots (root; BUILD=1 compiles there, too, BENCH=1 goes on with the benchmark's)
	@scripts/docker-steps.sh

check-cuda: setup ## The gateway compiled with CUDA, and what it says and does where that cannot run (needs no GPU)
	@scripts/models.sh
	@$(CARGO) clippy --locked -p pushdown -p pushdown-gateway --all-targets --features cuda -- -D warnings
	@$(CARGO) test --locked -p pushdown-gateway --features cuda --test it providers

.PHONY: fmt-check
fmt-check:
	@$(CARGO) fmt --all --check

fmt: ## Format the Rust code
	@$(CARGO) fmt --all

arrows: ## Workspace edges that are allowed, and crates that are not
	@scripts/arrows.sh

doc:
	@RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

deny: ## Licences, advisories and sources of all dependencies (installs cargo-deny if missing)
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	@$(CARGO) deny check

bench: ## Figures beside libjpeg-turbo, Pillow, OpenCV, torchvision and nginx (PEERS=torch installs torchvision, 5 GB)
	@scripts/bench.sh
	@$(CARGO) bench --locked -p pushdown-bench

bench-memory: ## Peak memory under a storm of large photos, and while large bodies pass
	@scripts/bench.sh memory

bench-e2e: ## Store, gateway and trainer as a whole, links shaped (root); SCENARIO=NAME for one, FULL=1 for all, NO_SHAPING=1 without root; 25 minutes
	@scripts/e2e.sh run $(SCENARIO) $(if $(FULL),--full) $(if $(NO_SHAPING),--no-shaping) $(if $(CHECK),--check)

benchmarks-doc: ## Write docs/BENCHMARKS.md and its figures from docs/figures/e2e.json
	@scripts/e2e.sh document docs/figures/e2e.json docs/BENCHMARKS.md

photos: setup ## Real photos for demo and benchmarks, into .cache/photos
	@scripts/photos.sh all

golden: ## Make the golden values again with Pillow and torchvision (5 GB of wheels)
	@scripts/setup.sh golden
	@.venv-golden/bin/python scripts/golden.py

golden-images: ## Make the damaged and unusual images again with Pillow and cjpeg
	@scripts/setup.sh golden-images
	@.venv-golden-images/bin/python scripts/golden_images.py

golden-tables: ## Make the golden tables again with DuckDB and pyarrow
	@scripts/setup.sh golden-tables
	@.venv-golden-tables/bin/python scripts/golden_tables.py

writers-text-arrow: ## Make the text and Arrow files of many writers again, and what is right of them
	@scripts/setup.sh writers-text-arrow
	@.venv-writers-text-arrow/bin/python scripts/writers_text_arrow.py

golden-tiffs: ## Make the golden TIFFs again with Pillow, tifffile and imagecodecs
	@scripts/setup.sh golden-tiffs
	@.venv-golden-tiffs/bin/python scripts/golden_tiffs.py

writers-parquet: ## Make the Parquet files of many writers again, and what is right of them
	@scripts/setup.sh writers-parquet
	@.venv-writers-parquet/bin/python scripts/writers_parquet.py

ci: ## What CI runs
	@.ci/run

clean: ## Remove what the targets made
	@rm -rf target .cache .venv .venv-* demo-sample.png bench/results
