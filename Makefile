# make run        install into .venv and open the program (options: make run ARGS="...")
# make test       everything; as root, on a real Slurm cluster (pytest options: ARGS="-k jobs")
# make test-base  what needs neither root nor Slurm nor TensorFlow
# make lint       the linters; make format brings the code into their form
# make bench      the benchmarks, as root (ARGS="NAME ...")
# make cluster    a Slurm cluster to try things on, with the program opened on it, as root
# make soak       the long proofs, as root
# make clean      remove what these made

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := run
.PHONY: run test test-base lint format bench cluster soak clean

ARGS ?=
SOURCES := $(shell find tfjobtui trainer sbatch -type f ! -name '*.pyc' 2>/dev/null)

run: .venv/.installed
	@exec .venv/bin/tfjobtui $(ARGS)

.venv/.installed: pyproject.toml $(SOURCES)
	@python=$$(tests/run python); \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$python can't make virtual environments: apt-get install python3-venv" >&2; exit 1; \
	fi; \
	[[ -x .venv/bin/python ]] || "$$python" -m venv .venv; \
	.venv/bin/python -m pip install --quiet --disable-pip-version-check .; \
	touch $@

test:
	@tests/run test $(ARGS)

test-base:
	@tests/run base $(ARGS)

lint:
	@tests/run lint

format:
	@tests/run format

bench:
	@tests/run bench $(ARGS)

cluster:
	@tests/run cluster

soak:
	@tests/run soak $(ARGS)

clean:
	@tests/run clean
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build
	@find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
