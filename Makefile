# Each target makes the virtual environment that it needs.

PYTHON ?= python3
# The lowest supported versions have wheels for Python 3.11 and 3.12 only.
ifeq ($(origin PYTHON_LOWEST),undefined)
PYTHON_LOWEST := $(firstword $(foreach p,python3.11 python3.12 $(PYTHON),$(shell \
	$(p) -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
	>/dev/null 2>&1 && echo $(p))))
endif

# What the tests of the deep methods run with: on Linux a CPU build, which only indexes of such
# builds carry (PIP_EXTRA_INDEX_URL may name one); elsewhere PyPI's is one. If it cannot be had,
# these tests are left out and named; TORCH=required makes that an error.
TORCH ?= optional
# The tests of the report open it in Chromium. Without one they are left out and named;
# BROWSER=required makes that an error.
BROWSER ?= optional
# The tests of Spark tables start a session of their own, for which the machine needs Java.
# Without it they are left out and named; SPARK=required makes that an error.
SPARK ?= optional
TORCH_BUILD := torch==2.13.0$(if $(filter Linux,$(shell uname -s)),+cpu)

VENV := .venv
LOWEST := .venv-lowest
OMICS := .venv-omics
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check -q
# One process a core, each with one thread: small products do not gain by more.
# Tests that start a cluster or a Spark session stay together in one of the processes.
PYTEST := -m pytest -q -n auto --dist loadgroup
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# What an installation is made of besides Python files, which are read in place.
SETUP := pyproject.toml $(wildcard hatch_build.py src/exactk/*.h src/exactk/*/*.h src/exactk/*/*.c)

.PHONY: demo test lint docs bench test-lowest test-omics clean
.DELETE_ON_ERROR:

demo: $(VENV)/.base
	@$(BIN)/python examples/demo.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Warnings are errors: a link that leads nowhere, a docstring that cannot be shown, a missing page.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs docs/_build/html
	@echo "open docs/_build/html/index.html"

test: lint test-lowest test-omics $(VENV)/.torch
	@echo "== newest versions"
# With SCIPY_ARRAY_API scikit-learn also runs its array API check of the selector.
	@SCIPY_ARRAY_API=1 EXACTK_BROWSER=$(BROWSER) EXACTK_SPARK=$(SPARK) $(SINGLE) $(BIN)/python $(PYTEST) -m "not omics"
	@[ -e $(VENV)/.torch ] || echo "left out: the deep methods, $(TORCH_BUILD) could not be installed" \
		"(PIP_EXTRA_INDEX_URL may name an index that has it)"
ifeq ($(PYTHON_LOWEST),)
	@echo "left out: the run with the lowest versions, no Python 3.11 or 3.12 found (set PYTHON_LOWEST)"
endif

ifeq ($(PYTHON_LOWEST),)
test-lowest:
	@echo "lowest versions: no Python 3.11 or 3.12 found (set PYTHON_LOWEST)"
else
# Old releases warn about what newer ones changed; that is theirs to mend, not ours.
test-lowest: $(LOWEST)/.test
	@echo "== lowest versions"
	@EXACTK_SPARK=$(SPARK) $(SINGLE) $(LOWEST)/bin/python $(PYTEST) -m "not slow" -W default::DeprecationWarning -W default::FutureWarning
endif

# The newest anndata may hold other packages back, pandas above all; the tests of the newest
# versions are not to suffer from that.
test-omics: $(OMICS)/.test
	@echo "== anndata"
	@$(SINGLE) $(OMICS)/bin/python $(PYTEST) -m omics

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.limits
	$(BIN)/python -m benchmarks.comparison --only speed memory --add

clean:
	rm -rf $(VENV) $(LOWEST) $(OMICS) docs/_build docs/api docs/methods docs/examples build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/exactk/*/_native.so src/exactk/*/_native.dll
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "exactk needs Python 3.11 or newer; '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>&1 || true): call make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: $(SETUP) | $(BIN)/python
	@$(BIN)/python $(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(SETUP) | $(BIN)/python
	@$(BIN)/python $(PIP) install -e ".[test,lint,docs,peers,browser]"
	@touch $@ $(VENV)/.base

# Not made where the build cannot be had: the next run tries again.
$(VENV)/.torch: $(VENV)/.dev
	@if $(BIN)/python $(PIP) install "$(TORCH_BUILD)"; then touch $@; \
		elif [ "$(TORCH)" = required ]; then exit 1; \
		else rm -f $@; echo "$(TORCH_BUILD) cannot be had: the deep methods will not be tested"; fi

$(VENV)/.bench: $(SETUP) | $(BIN)/python
	@$(BIN)/python $(PIP) install -e ".[bench]"
	@touch $@ $(VENV)/.base

$(LOWEST)/bin/python:
	@echo "making $(LOWEST)"
	@$(PYTHON_LOWEST) -m venv $(LOWEST)

$(LOWEST)/.test: $(SETUP) tools/lowest.py | $(LOWEST)/bin/python
	@$(LOWEST)/bin/python tools/lowest.py > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python $(PIP) install -e ".[test,omics]" -c $(LOWEST)/constraints.txt
	@touch $@

$(OMICS)/.test: $(SETUP) | $(BIN)/python
	@echo "making $(OMICS)"
	@$(PYTHON) -m venv $(OMICS)
	@$(OMICS)/bin/python $(PIP) install -e ".[test,omics]"
	@touch $@
