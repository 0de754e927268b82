# Every target sets up what it needs: a fresh clone with Python 3.11, pip and make is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LENS4  := $(VENV)/lens4
# The corpus of machines and circuits written by others, if it is at hand; its tests are skipped otherwise.
export TAPEGRAD_CORPUS ?= $(wildcard $(CURDIR)/../shared/corpus)

.PHONY: help demo test test-all lint bench docs clean

help:
	@echo "make demo      set up, then compile, run and verify something on every target"
	@echo "make test      set up, then lint, type-check and run the tests"
	@echo "make test-all  the tests and the long runs, with a C compiler, yosys, PyTorch, TransformerLens and Ray"
	@echo "make lint      ruff, import-linter and pyright only"
	@echo "make bench     benchmarks, written to bench/out"
	@echo "make docs      the documentation as a site, written to site"

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV): packages are fetched and installed, which takes a minute or two. This happens once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/tapegrad demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

test: lint
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow" --durations=10

$(VENV)/.all-ready: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,c,ray,torch,transformer-lens,verilog,vnn]'
	@touch $@

# Version 4 of TransformerLens has another interface than version 3: the tests of both are run.
$(LENS4)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LENS4)
	grep -v '^transformer-lens==' constraints.txt > $(LENS4)/constraints.txt
	$(LENS4)/bin/pip install --quiet --disable-pip-version-check --constraint $(LENS4)/constraints.txt --editable '.[dev,torch]' 'transformer_lens==4.3.0'
	@touch $@

test-all: lint $(VENV)/.all-ready $(LENS4)/.ready
	$(BIN)/pytest -n 2 --dist worksteal --durations=30
	$(LENS4)/bin/pytest tests/interop/test_transformer_lens.py tests/interop/test_examples.py tests/interop/test_sequences.py tests/interop/test_disguise.py

bench: $(READY)
	$(BIN)/python -m bench

$(VENV)/.docs-ready: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist *.egg-info
