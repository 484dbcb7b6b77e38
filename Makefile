# Each target makes the virtual environment that it needs.

PYTHON ?= python3
# The package whose tests `make test` runs; all packages without it.
ONLY ?=
# With STRICT=1 the run fails if a test is skipped because the machine lacks what it needs.
STRICT ?= 0
# The deep methods are tested with a CPU build of PyTorch. On Linux PyPI has none: an index that
# PIP_EXTRA_INDEX_URL names may have it (https://download.pytorch.org/whl/cpu).
TORCH := torch==2.13.0$(if $(filter Linux,$(shell uname -s)),+cpu)

VENV := .venv
LOWEST := .venv-lowest
OMICS := .venv-omics
# Windows has another name for the folder of programs.
PROGRAMS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(PROGRAMS)
# uv does not read the settings of pip: it gets the index from them.
INDEX = $(or $(UV_DEFAULT_INDEX),$(PIP_INDEX_URL),$(shell $(BIN)/python -m pip config get global.index-url 2>/dev/null))
UV = $(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) $(BIN)/uv
INSTALL = $(UV) pip install -q --compile-bytecode
# One process per core, one thread per process.
PYTEST := -m pytest -q -n auto
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Changes in these files need a new installation; Python files are read in place.
SETUP := pyproject.toml $(wildcard hatch_build.py src/exactk/native/*.h src/exactk/native/*.c)

# Compiled test files save 10 s in every later run.
export PYTHONDONTWRITEBYTECODE :=
export EXACTK_STRICT := $(STRICT)

.PHONY: demo test test-fast test-all test-newest test-lowest test-omics test-packages lint docs bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.base
	@$(BIN)/python examples/demo.py

ifneq ($(ONLY),)
ONLY_PATHS := $(wildcard tests/unit/$(ONLY) tests/unit/test_$(ONLY).py src/exactk/$(ONLY) src/exactk/$(ONLY).py)
ifeq ($(ONLY_PATHS),)
PACKAGES := $(patsubst tests/unit/%/.,%,$(wildcard tests/unit/[a-z]*/. tests/unit/*/[a-z]*/.))
$(error there is no package '$(ONLY)'; choose one of: $(PACKAGES))
endif
endif

test: $(if $(ONLY),,lint) test-fast

test-fast: $(VENV)/.test
	@$(SINGLE) $(BIN)/python $(PYTEST) --dist worksteal -m "not full" $(ONLY_PATHS)

test-all: lint test-newest test-lowest test-omics test-packages

# With SCIPY_ARRAY_API scikit-learn also runs its array API checks of the selector.
test-newest: $(VENV)/.all
	@echo "== newest versions"
	@SCIPY_ARRAY_API=1 $(SINGLE) $(BIN)/python $(PYTEST) --dist loadgroup -m "not omics"

# Old releases warn about changes in newer ones.
test-lowest: $(LOWEST)/.test
	@echo "== lowest versions"
	@$(SINGLE) $(LOWEST)/$(PROGRAMS)/python $(PYTEST) --dist loadgroup -m "not full or dask or spark" \
		-W default::DeprecationWarning -W default::FutureWarning

# The newest anndata may hold other packages back, above all pandas.
test-omics: $(OMICS)/.test
	@echo "== anndata"
	@$(SINGLE) $(OMICS)/$(PROGRAMS)/python $(PYTEST) -m omics

test-packages: $(VENV)/.test
	@echo "== installed wheel and sdist"
	@$(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) $(SINGLE) $(BIN)/python tools/check_packages.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/pre-commit run --all-files

# Warnings are errors: a broken link, a docstring that cannot be shown, a missing page.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -j auto docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks compare --only cells
	$(BIN)/python -m benchmarks limits
	$(BIN)/python -m benchmarks comparison --only speed memory

clean:
	rm -rf $(VENV) $(LOWEST) $(OMICS) docs/_build docs/api docs/methods docs/examples build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo_report.html
	rm -f src/exactk/native/*.so src/exactk/native/*.dll
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "exactk needs Python 3.11 or newer; '$(PYTHON)' is" \
			"$$($(PYTHON) --version 2>&1 || true): call make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check -q install uv
	@touch $@

$(VENV)/.base: $(SETUP) | $(VENV)/.uv
	@$(INSTALL) --python $(VENV) -e .
	@touch $@

$(VENV)/.test: $(SETUP) | $(VENV)/.uv
	@$(INSTALL) --python $(VENV) -e ".[cli,pandas,polars,plots]" --group test --group lint
	@touch $@ $(VENV)/.base

$(VENV)/.docs: $(SETUP) | $(VENV)/.uv
	@$(INSTALL) --python $(VENV) -e ".[cli,plots]" --group docs
	@touch $@ $(VENV)/.base

# pip installs PyTorch, since its settings say where a CPU build is.
$(VENV)/.all: $(SETUP) | $(VENV)/.uv
	@$(INSTALL) --python $(VENV) -e ".[cli,pandas,polars,dask,spark,plots]" --group dev
	@$(BIN)/python -m pip --disable-pip-version-check -q install "$(TORCH)" || [ $(STRICT) = 0 ]
	@touch $@ $(VENV)/.base $(VENV)/.test $(VENV)/.docs

$(VENV)/.bench: $(SETUP) | $(VENV)/.uv
	@$(INSTALL) --python $(VENV) -e . --group bench
	@touch $@ $(VENV)/.base

# The lowest versions have wheels for Python 3.11 and 3.12 only.
$(LOWEST)/.test: $(SETUP) | $(VENV)/.uv
	@echo "making $(LOWEST)"
	@$(BIN)/uv venv -q --clear --python ">=3.11,<3.13" $(LOWEST)
	@$(INSTALL) --python $(LOWEST) --resolution lowest-direct \
		-e ".[cli,pandas,polars,arrow,dask,spark,plots,omics]" --group test
	@touch $@

$(OMICS)/.test: $(SETUP) | $(VENV)/.uv
	@echo "making $(OMICS)"
	@$(BIN)/uv venv -q --clear --python $(BIN)/python $(OMICS)
	@$(INSTALL) --python $(OMICS) -e ".[cli,pandas,polars,dask,plots,omics]" --group test
	@touch $@
