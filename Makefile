# Only Python (3.11 or newer) and make are needed: every target installs what it uses into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pytest-xdist fills the cores, so each test process gets one thread.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: demo test check lint types tests fast-tests docs lint-js lowest bench clean

demo: $(VENV)/.installed-bench
	$(BIN)/python examples/demo.py

test: lint types tests docs
	@echo "All checks passed. 'make check' runs the fast part: lint, types and the tests not marked slow."

check: lint types fast-tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-cache

types: $(VENV)/.installed-dev
	$(BIN)/mypy

tests: $(VENV)/.installed-dev
	$(PYTEST)

fast-tests: $(VENV)/.installed-dev
	$(PYTEST) -m "not slow"

docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# The linter of the pages' JavaScript; needs Node.js.
lint-js:
	@command -v npx > /dev/null || { echo "make lint-js needs Node.js: install it, then run again." >&2; exit 1; }
	npx --yes @biomejs/biome@2.6.6 ci src

# The tests with the lowest versions that pyproject.toml declares, in an environment of their own.
lowest: VENV := .venv-lowest
lowest:
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PYTHON) .ci/lowest_versions.py > $(VENV)/constraints.txt
	$(VENV)/bin/python -m pip install --quiet --constraint $(VENV)/constraints.txt --editable ".[test]"
	$(VENV)/bin/python -m pytest -n auto -m "not slow"

bench: $(VENV)/.installed-cli
	$(BIN)/python benchmarks/speed.py

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "scikit-pml needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest docs/_build docs/api demo
