# make train | test | lint | docs | bench | test-gpu | bench-gpu | clean: everything happens in .venv, made on first use.
# Needs Python 3.11+ and make; the two for GPUs an NVIDIA driver for CUDA 13.

PYTHON ?= python3
BIN := .venv/bin

# Files of bytecode are kept, whatever a container says: without them every process that a test starts compiles 300 files.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: train test lint suite docs bench test-gpu bench-gpu clean

train: .venv/train
	$(BIN)/python examples/train_digits.py

# Folders that test kernels have the machine code of users; for all others LLVM optimizes nothing, in two fifths of its time.
KERNELS := $(addprefix tests/,codegen fuzz library lower)
# No processes that compile beside a test's own: all processors are busy with tests.
PYTEST := GENESIS_COMPILE_WORKERS=0 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

# Both at once: mypy works on one processor.
test:
	$(MAKE) --jobs=2 lint suite

suite: .venv/test
	$(PYTEST) $(KERNELS); found=$$?; NUMBA_OPT=0 $(PYTEST) $(addprefix --ignore=,$(KERNELS)) && exit $$found

lint: .venv/test
	$(BIN)/ruff check genesis tests tools benchmarks examples
	$(BIN)/mypy genesis

docs: .venv/docs
	$(BIN)/python -m mkdocs build --strict

bench: .venv/bench
	$(BIN)/python -m benchmarks.run --json benchmarks/results.json --picture benchmarks/results.png

test-gpu: .venv/test-gpu
	$(BIN)/python -m pytest --device cuda

bench-gpu: .venv/bench-gpu
	$(BIN)/python -m benchmarks.gpu

# A stamp per extra: what it stands for is installed, by the packaging that is here.
.venv/%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	@touch $@

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "genesis needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv build out *.egg-info
