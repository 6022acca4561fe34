# Two commands do everything on a machine with python3, pip and make:
#   make demo    sets up and shows constrained dynamics of a humanoid
#   make test    sets up and runs the tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
MEASURED ?= build/bench
MINUTES ?= 30
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
ARM ?= build/arm
CROCODDYL ?= build/crocoddyl
ROBOTS := $(wildcard ../shared/robots)
export LINKWORK_ROBOTS ?= $(if $(ROBOTS),$(abspath $(ROBOTS)))

.PHONY: demo test test-arm test-crocoddyl test-pythons lint fuzz bench docs dist check-dist clean

demo: $(VENV)/.core
	$(BIN)/linkwork demo

# with byte code, whatever the environment says: the tests start hundreds of processes; a third worker has the cores
# while others wait for browsers and clusters
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 3 --dist worksteal $(PYTEST)

# a slice of the tests on emulated 64-bit ARM, set up in $(ARM) when it is not there yet
test-arm: $(VENV)/.core
	$(BIN)/python tools/test_arm.py $(ARM) $(if $(PYTEST),-- $(PYTEST))

# Crocoddyl's wheel crashes with the Pinocchio that the other tests need: an environment of its own
test-crocoddyl: $(CROCODDYL)/.done
	$(CROCODDYL)/bin/python -m pytest tests/learn/test_crocoddyl.py $(PYTEST)

# what depends on Python's insides, with every Python here
test-pythons: $(VENV)/.core
	$(BIN)/python tools/test_pythons.py $(PYTHONS)

lint: $(VENV)/.dev
	$(BIN)/ruff check src benchmarks tests examples tools
	$(BIN)/ruff format --check src benchmarks tests examples tools
	$(BIN)/mypy

# random mechanisms against a judge that shares no code with the algorithms; failures are saved in build/fuzz
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/campaign.py --minutes $(MINUTES) $(FUZZ)

# everything that the README says about speed, measured anew: on an idle machine, with the peers' build folders in
# LINKWORK_PEERS; BENCH=--processor-time where other work cannot be kept away
bench: $(VENV)/.dev
	mkdir -p $(MEASURED)
	for suite in kernels constrained loops papers; do \
	  $(BIN)/linkwork bench $$suite $(BENCH) --json $(MEASURED)/$$suite.jsonl || exit 1; done
	$(BIN)/python tools/readme_numbers.py --take $(MEASURED)/*.jsonl
	$(BIN)/linkwork bench show $(MEASURED)/papers.jsonl --html $(MEASURED)/papers.html

# the site, in build/site: strict, so that a link that leads nowhere is an error
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# wheels and source archives of both distributions, in dist/
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist benchmarks

# what dist/ holds, installed into fresh environments of every Python here, where the README's ten lines run
check-dist: dist
	$(BIN)/python tools/check_dist.py dist $(PYTHONS)

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# a stamp per set of packages: nothing is installed again until pyproject.toml changes
$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.test: pyproject.toml benchmarks/pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]' -e benchmarks
	touch $@ $(VENV)/.core

$(CROCODDYL)/.done: pyproject.toml
	$(PYTHON) -m venv $(CROCODDYL)
	$(CROCODDYL)/bin/pip install --quiet --disable-pip-version-check -e '.[crocoddyl]' hypothesis pytest
	touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@ $(VENV)/.core

$(VENV)/.dev: pyproject.toml benchmarks/pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -e benchmarks
	touch $@ $(VENV)/.core $(VENV)/.test
