# Each target makes its own .venv from pyproject.toml and constraints.txt, so a machine with Python 3.11+ is enough.
.DEFAULT_GOAL := help
.PHONY: help demo test lint compiled bench native docs format clean

# The first Python that is new enough; `make test PYTHON=/path/to/python` takes another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Stamps: the packages of pyproject.toml are installed; the tools for developers as well
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

help:
	@echo "make demo    run a scenario, explain it and draw it"
	@echo "make test    lint, types, layers and tests"
	@echo "make bench   benchmarks: speed and memory against the bare SimPy loop"
	@echo "make native  compile what a run spends its time in (needs a C compiler)"
	@echo "make docs    build the documentation into docs/_build"
	@echo "make format  format the code and strip the notebooks"
	@echo "make clean   remove builds and caches"

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "gpusim needs Python 3.11 or newer; none was found" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "no $(VENV): on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
	@touch $@

$(RUNTIME): pyproject.toml constraints.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(RUNTIME) $@

demo: $(RUNTIME)
	$(BIN)/gpusim run scenarios/first_touch.yaml --out results/demo
	$(BIN)/gpusim explain results/demo
	$(BIN)/gpusim plot results/demo
	@echo "The pictures are in results/demo; the first to look at is breakdown.png."

test: $(DEV)
	$(MAKE) --jobs=2 --output-sync=target --no-print-directory lint compiled
	$(BIN)/pytest -n 2 --dist worksteal  # neighbours share the runs that they look at

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-cache

# where the modules cannot be compiled, Python runs
compiled: $(DEV)
	$(BIN)/python -m gpusim.native || test $$? = 2

bench: $(DEV) compiled
	GPUSIM_PURE_PYTHON=0 $(BIN)/pytest tests/benchmarks -m "" -q --no-header

native: $(DEV)
	$(BIN)/python -m gpusim.native

docs: $(DEV)
	$(BIN)/python docs/generate.py
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -b html docs docs/_build
	@echo "docs/_build/index.html"

format: $(DEV)
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .
	$(BIN)/nbstripout notebooks/*.ipynb

clean:
	rm -rf build dist docs/_build gpusim/native/built .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find gpusim tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
