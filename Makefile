# Every target works on a fresh machine with Python >= 3.11, Go >= 1.26 and the package registries.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help venv demo test test-quick lint format types layers proto proto-go proto-check lock bench fuzz soak docs clean \
	binary image release manifests binary-lock e2e e2e-short e2e-kind

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/:[^#]*## /\t/' | expand -t 16

venv: $(VENV)/.ready ## Make the virtual environment with the pinned packages

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@echo 'installing the pinned packages into $(VENV) (once) …'
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: venv ## Play a canary rollout under real load on an embedded API and gateway (DEMO="--transport grpc --fast")
	$(BIN)/rollouts-gwapi-plugin demo $(DEMO)

# The stubs' import path is the virtual path of the .proto files, so the files need no rewriting.
STUBS := rollouts_gwapi_plugin/transport/grpc/_generated
PROTOS := rollouts_gwapi_plugin/v1/traffic_router.proto plugin/grpc_controller.proto plugin/grpc_stdio.proto \
	plugin/grpc_broker.proto
PROTOC = $(BIN)/python -m grpc_tools.protoc -I$(STUBS)=proto $(addprefix $(STUBS)/,$(PROTOS))

proto: venv ## Make the gRPC stubs from proto/
	$(PROTOC) --python_out=src --pyi_out=src --grpc_python_out=src

proto-go: venv ## Make the Go stubs of the interop judge from proto/ (a test checks that they are up to date)
	cd tests/interop/go && go build -o $(CURDIR)/build/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
	$(BIN)/python -m grpc_tools.protoc -Iproto --plugin=protoc-gen-go=build/protoc-gen-go --go_out=tests/interop/go \
		--go_opt=module=rollouts-gwapi-plugin proto/rollouts_gwapi_plugin/v1/traffic_router.proto

proto-check: venv ## Check that the committed stubs are what proto/ gives
	rm -rf build/proto && mkdir -p build/proto
	$(PROTOC) --python_out=build/proto --pyi_out=build/proto --grpc_python_out=build/proto
	diff -r --exclude=__init__.py --exclude=__pycache__ build/proto/$(STUBS) src/$(STUBS)

lint: venv proto-check ## Format check, ruff, mypy, import contracts, generated stubs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv ## Format and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What builds, or starts many processes, comes second: these take the cores for themselves. The short temporary folder
# keeps socket paths below their limit.
SHARED := --numprocesses 2 --dist loadfile --no-loadscope-reorder --basetemp $$tmp/a
BUILDING := tests/interop tests/packaging
test: lint ## Everything: lint, unit and property tests, Go interop, the one file, demos, a short end-to-end set
	tmp=$$(mktemp -d /tmp/t.XXXX) && $(BIN)/pytest $(SHARED) $(addprefix --ignore ,$(BUILDING)) && rm -rf $$tmp
	tmp=$$(mktemp -d /tmp/t.XXXX) && $(BIN)/pytest $(SHARED) $(BUILDING) && rm -rf $$tmp
	$(MAKE) e2e-short

# Only a KUBECONFIG that is given to make itself counts: the one of your environment may be a cluster of yours.
E2E_CLUSTER = $(if $(filter command%line,$(subst $() ,%,$(origin KUBECONFIG))),--e2e-kubeconfig $(KUBECONFIG))

e2e: venv binary ## Tell all end-to-end cases on a real cluster without docker (E2E="-k name"), or on KUBECONFIG=FILE
	$(BIN)/pytest e2e $(E2E_CLUSTER) $(E2E)

e2e-short: venv binary ## The end-to-end cases that `make test` includes
	$(BIN)/pytest e2e -m e2e_short $(E2E)

e2e-kind: venv binary ## Tell the end-to-end cases on a kind cluster (needs docker, kind, kubectl)
	$(BIN)/shellcheck e2e/kind/run
	e2e/kind/run $(E2E)

fuzz: venv ## Mutate golden bytes against the wire codecs (FUZZ_SECONDS=60, FUZZ_SEED=N repeats a run)
	$(BIN)/python tests/fuzz/run.py

soak: venv ## Let the stateful property live long, on other examples than `make test` (STATEFUL_EXAMPLES=5000)
	HYPOTHESIS_RANDOM=1 STATEFUL_EXAMPLES=$(or $(STATEFUL_EXAMPLES),5000) $(BIN)/pytest tests/stateful --timeout 36000

# Not --quiet: mkdocs does not count the warnings that it does not show.
docs: venv ## Build the documentation site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: venv ## Measure the plugin under Go's host, and the gob decoder (BENCH_CALLS=10000)
	$(BIN)/python bench/bench_gob.py
	$(BIN)/python -m bench.bench_plugin

BUILDER = PYTHONPATH=packaging $(BIN)/python -m builder

binary: venv ## Build the one-file executable into dist/ (ARCH=arm64 for the other architecture)
	$(BUILDER) binary --arch $(or $(ARCH),amd64)

image: venv ## Build the image of the executables in dist/ (needs buildah)
	$(BUILDER) image

release: venv ## Everything that is released, into dist/, from a clean tree (TRIAL=1 from any)
	$(BUILDER) release $(if $(TRIAL),--trial)

manifests: venv ## Write examples/install and the manifests in docs/ from their source
	$(BUILDER) manifests

binary-lock: venv ## Pin the newest Debian packages that the executable carries
	$(BUILDER) lock

lock: ## Pin the newest versions of all packages in requirements.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --python-version 3.11 --universal --upgrade -o requirements.lock

clean: ## Remove what the other targets made
	rm -rf $(VENV) dist build out .pytest_cache .mypy_cache .ruff_cache .hypothesis
