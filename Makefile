# make run   sets everything up and shows the main job working
# make test  sets everything up and runs every check
# Both need nothing but Python 3.11+ and make. Tests use real servers where they are installed or can be (make services).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
SUITE  ?= embedded

.PHONY: chaos run test check unit fmt lint types imports simulate bench bench-peers docs dashboards services lock clean help

help:
	@sed -n 's/^# //p' Makefile; grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/ —/'

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	@echo "== installing (pinned with hashes in requirements.lock)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

run: $(STAMP) ## set up, then show the main job: youtube + blog → relatorio
	@$(BIN)/oraculo demo

test: $(STAMP) check unit ## every check and every test

check: lint types imports

unit: $(STAMP) services
	@echo "== tests"
	@$(BIN)/pytest -n $(JOBS) --dist loadgroup

fmt: $(STAMP) ## format and fix
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(STAMP) ## ruff
	@echo "== ruff"; $(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(STAMP) ## mypy --strict
	@echo "== mypy"; $(BIN)/mypy

imports: $(STAMP) ## layers
	@echo "== import-linter"; $(BIN)/lint-imports

simulate: $(STAMP) ## many more simulated worlds than make test
	@$(BIN)/oraculo prove --seeds 20000

bench: $(STAMP) ## W1, W2 and SEQ on this machine
	@$(BIN)/oraculo bench

bench-peers: $(STAMP) ## the same beside Celery, Dramatiq, Temporal and DBOS; SUITE=redis, rabbitmq, nats, kafka, postgres, celery or temporal
	@benchmarks/setup.sh && $(BIN)/python benchmarks/run.py --suite $(SUITE) --json benchmarks/results/latest-$(SUITE).json

docs: $(STAMP) ## check that docs and code agree
	@$(BIN)/pytest tests/test_docs.py

dashboards: $(STAMP) ## write the dashboard, the alert rules and their tests from deploy/observability
	@$(BIN)/python -m deploy.observability.generate

services: $(STAMP) ## every server that tests use: installs what is missing and can be had
	@echo "== servers for tests"
	@$(BIN)/python -m services.install

chaos: $(STAMP) services ## everything is killed 30 times on every broker, 30 flaps, longer faults
	@ORACULO_CHAOS_KILLS=30 $(BIN)/pytest -s tests/acceptance/test_kill.py tests/acceptance/test_broker_kills.py \
	  tests/acceptance/test_broker_faults.py tests/acceptance/test_failover.py tests/acceptance/test_replicas.py \
	  tests/acceptance/test_celery_faults.py tests/acceptance/test_temporal_faults.py tests/acceptance/test_flow_c_kills.py \
	  tests/acceptance/test_flow_c_steps.py tests/contracts/test_broker_server.py

lock: $(STAMP) ## refresh requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-emit-find-links --all-extras --group dev pyproject.toml -o requirements.lock

clean: ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
