# Everything runs from .venv, which `make setup` fills from uv.lock; no target needs an activated environment.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.setup-done
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup lock test unit lint format versions wheel docs demo policies bench bench-peers studies matrix faults faults-long mutants chaos clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Programs start in half the time when bytecode is there, also where Python is told not to write any by itself.
setup: $(STAMP) ## put everything into .venv (only when pyproject.toml or uv.lock changed)
	@$(BIN)/python -m compileall -q src bench studies tests examples

# --inexact keeps pip and uv themselves, which are not in the lock file.
$(STAMP): pyproject.toml uv.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	$(BIN)/uv sync --quiet --locked --all-extras --inexact --compile-bytecode
	@touch $@

# The lock file must be the same whoever writes it: only the public index, no settings of this machine.
lock: ## write uv.lock anew from pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	env -u UV_INDEX -u UV_INDEX_URL -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS \
		$(BIN)/uv lock --no-config --default-index https://pypi.org/simple

test: setup lint docs versions unit ## lint, build the docs, then run all tests

# Tests that find such an environment run in it too: functions and classes travel differently with each version.
versions: setup ## environments with Python 3.12 and 3.13 as far as they are here, for the tests
	@for version in 3.12 3.13; do \
		for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
			if $$python -c "" 2>/dev/null; then \
				UV_PROJECT_ENVIRONMENT=.venv-$$version $(BIN)/uv sync --quiet --locked --no-default-groups \
					--group models --extra cluster --python $$python --no-python-downloads; \
				break; \
			fi; \
		done; \
	done

# One more than there are processors here: many tests wait for processes of their own.
unit: setup
	$(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

lint: setup ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff format and mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: setup ## build dist/daws-*.whl and dist/daws-*.tar.gz, which plain pip installs
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist

# The tools that build the site are a group of their own, which nothing else needs.
.venv/.docs-done: pyproject.toml uv.lock | setup
	$(BIN)/uv sync --quiet --locked --all-extras --group docs --inexact --compile-bytecode
	@touch $@

docs: setup .venv/.docs-done ## build the site of the documentation into site/ (open site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

demo: setup ## a workflow live on all cores, and beside it what the simulator says; leaves its plot behind
	$(BIN)/python examples/demo.py $(ARGS)

policies: setup ## a simulation that compares policies and leaves its plot behind
	$(BIN)/python examples/policies.py $(ARGS)

bench: setup ## measure the simulator's speed and memory
	$(BIN)/python -m bench $(ARGS)

# Peers have an environment of their own; compiled beforehand, so that no system pays for it when it starts.
.venv-peers/.setup-done: pyproject.toml uv.lock | setup
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	UV_PROJECT_ENVIRONMENT=.venv-peers $(BIN)/uv sync --quiet --locked --all-extras --no-default-groups \
		--group peers --inexact --compile-bytecode
	@touch $@

bench-peers: setup .venv-peers/.setup-done ## daws beside a bare loop, concurrent.futures, Dask, Ray and others (an hour)
	.venv-peers/bin/python -m bench.peers $(ARGS)

studies: setup ## published tables and figures beside ours; writes docs/studies (less than an hour)
	$(BIN)/daws study --all $(ARGS)

matrix: setup ## every preset on every workload at up to 1,000 nodes
	$(BIN)/python -m tests.sim.matrix $(ARGS)

faults: setup ## 1,000 seeds of crashes, losses, delays, partitions, and stores that fail
	$(BIN)/python -m tests.sim.faults $(ARGS)

faults-long: setup ## 20,000 such seeds, of all ranges of the corpus (an hour)
	$(BIN)/python -m tests.sim.faults --seeds 20000 --all-ranges $(ARGS)

chaos: setup ## 50 real clusters on each store and of Cluster(nodes=4), whose nodes, store, client, links and disks are beaten by seed
	$(BIN)/python -m tests.chaos --store embedded $(ARGS)
	$(BIN)/python -m tests.chaos --store valkey $(ARGS)
	$(BIN)/python -m tests.chaos --store private $(ARGS)

mutants: setup ## take the rules out one by one; the fault seeds and tests of the runtime must notice
	$(BIN)/python -m tests.sim.mutants $(ARGS)
	$(BIN)/python -m tests.unit.core.mutants
	$(BIN)/python -m tests.unit.store.valkey.mutants
	$(BIN)/python -m tests.unit.runtime.cluster.mutants

clean: ## remove what the targets above made
	rm -rf .venv .venv-peers .venv-3.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache out build dist site
