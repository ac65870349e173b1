# Everything runs in .venv, which each target makes or refreshes when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Compiled JAX programs outlive a clone, so that a second run of the tests is quick.
export JAX_COMPILATION_CACHE_DIR ?= $(HOME)/.cache/neuralmjp/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.2
export MPLBACKEND ?= Agg

.PHONY: setup demo test test-slow lint bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/neuralmjp demo --out demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Each prints a table and judges the requirements it states; those on real data or R say so where these are missing.
bench: $(READY)
	for subject in simulate states against_hmmlearn ratchet free_rates ion_channel msm neural lattice lotka_volterra streaming scaling; do \
		$(BIN)/python benchmarks/$$subject.py || exit 1; \
	done

docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .ruff_cache
