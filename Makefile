# `make run` and `make test` are all a newcomer needs; the rest is for developers.
# The first python3 that is new enough; `make PYTHON=…` names another.
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --editable
# What is built; Python files are used where they are.
SOURCES := pyproject.toml setup.py $(wildcard exec_helper/*.[ch] exec_helper/hotloop/*.[ch])

.PHONY: run test check lint bench clean

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "nd7: Python 3.11 or newer is needed" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	$(PIP) .
	touch $@

$(VENV)/.installed-dev: $(SOURCES) | $(BIN)/python
	$(PIP) '.[dev]'
	touch $(VENV)/.installed $@

# Claude Code if it is installed, else the bundled demo agent.
run: $(VENV)/.installed
	@if command -v claude >/dev/null; then exec $(BIN)/nd7 tui claude; else exec $(BIN)/nd7 tui demo; fi

# All of it, the end-to-end and attack tests too.
test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check:
	.ci/run

bench: $(VENV)/.installed-dev
	status=0; for file in benchmarks/[!_]*.py; do $(BIN)/python "$$file" || status=1; done; exit $$status

clean:
	rm -rf $(VENV) build *.egg-info nd7tui/engine/sandbox/_hotloop*.so
