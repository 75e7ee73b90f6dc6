# `make` lists the targets. Every target prepares what it needs by itself; the second time that takes no time.
.DEFAULT_GOAL := help
.PHONY: help demo serve test check bench proof conformance release-check lock clean native postgres browser peers
export PYTHON

BIN := .venv/bin
# Three workers on two cores: many tests wait for a process or a database.
PYTEST := $(BIN)/python -m pytest -n 4
RESOLVE = $(BIN)/python -m uv pip compile pyproject.toml --universal --python-version 3.11 --quiet --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.runtime native ## Set up everything, then quote a deal with a real MCP client
	@$(BIN)/cpq init --sample
	@$(BIN)/cpq demo

serve: .venv/.runtime native ## Serve MCP and the console over HTTP, with sample data and a link to sign in
	@$(BIN)/cpq init --sample
	@$(BIN)/cpq console sample || echo "Serving what there is, without sample people and quotes."
	@exec $(BIN)/cpq serve --transport streamable-http

test: .venv/.ready native postgres browser ## Check format, lint and types, then run the suite on SQLite and PostgreSQL
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST)

check: .venv/.ready ## Format the code, then check lint and types
	$(BIN)/ruff format .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.ready native postgres peers ## Measure what is promised, beside its floor and other libraries
	@$(BIN)/python -m tests.bench

proof: .venv/.ready native postgres browser ## Run the long fault and fuzz tests
	$(PYTEST) -m proof

conformance: .venv/.ready native ## Run the official MCP conformance suite against the server
	@$(BIN)/python -m tests.conformance

release-check: .venv/.ready ## Compare the versions, build wheel, source and bundle, print the notes
	@$(BIN)/python -m tests.release

lock: .venv/.runtime ## Write both lock files from pyproject.toml (UPGRADE=1 takes the newest versions)
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet uv
	@echo "Resolving requirements.lock and requirements-dev.lock for all platforms"
	@mkdir -p .cache && cat requirements.lock requirements-dev.lock >.cache/all.lock
	@$(RESOLVE) --extra dev $(if $(UPGRADE),--upgrade) --output-file .cache/all.lock
	@$(RESOLVE) --extra checkout --constraint .cache/all.lock --upgrade --output-file requirements.lock
	@$(RESOLVE) --extra dev --constraint .cache/all.lock --upgrade --output-file requirements-dev.lock \
		$$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.lock)

clean: ## Remove .venv, caches and build output; your data in .cpq stays
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the product runs with, and beside it what only tests and benchmarks need: Java, Node, a browser's driver.
.venv/.runtime: pyproject.toml requirements.lock
	@.ci/setup venv
	@touch $@

.venv/.ready: .venv/.runtime requirements-dev.lock
	@.ci/setup dev
	@touch $@

native: .venv/.runtime
	@.ci/setup native

postgres: .venv/.ready
	@.ci/setup postgres

browser: .venv/.ready
	@.ci/setup browser

peers: .venv/.ready
	@.ci/setup peers
