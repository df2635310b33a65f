# make run   sets everything up and shows the main job working
# make test  sets everything up and runs every check
# Both need nothing but Python 3.11+ and make. Tests use real servers where they are installed or can be (make services).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 3
SUITE  ?= embedded
NEW_ENOUGH := import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed; make PYTHON=python3.12 uses another one than " + sys.executable)
KILLS  ?= 30
MESSAGES ?= 10000000
FUZZ   ?= 60
EXAMPLES ?= 100
# Tests and commands start hundreds of processes: modules are compiled once, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: chaos soak run test check unit fmt lint types imports simulate bench bench-peers bench-record bench-table bench-neighbours fuzz docs site recording dashboards chart protos services hooks lock clean help \
  services-tests services-image services-kubernetes services-vault test-image test-kubernetes test-vault test-release release

help:
	@sed -n 's/^# //p' Makefile; grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/ —/'

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	@test ! -x $(BIN)/python || $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || rm -rf $(VENV)
	@test -x $(BIN)/python || { $(PYTHON) -c '$(NEW_ENOUGH)' && $(PYTHON) -m venv $(VENV); }
	@echo "== installing (pinned with hashes in requirements.lock)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

run: $(STAMP) ## set up, then show the main job: youtube + blog → relatorio
	@$(BIN)/oraculo demo

test: $(STAMP) check unit ## every check and every test

check: lint types imports

unit: $(STAMP) services-tests
	@echo "== tests"
	@$(BIN)/pytest -n $(JOBS) --dist loadgroup

fmt: $(STAMP) ## format and fix
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(STAMP) ## ruff
	@echo "== ruff"; $(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(STAMP) ## mypy --strict on the package and tools, a looser profile on tests
	@echo "== mypy"; $(BIN)/mypy && $(BIN)/mypy tests

imports: $(STAMP) ## layers
	@echo "== import-linter"; $(BIN)/lint-imports

simulate: $(STAMP) ## many more simulated worlds than make test
	@$(BIN)/oraculo prove --seeds 20000

bench: $(STAMP) ## W1, W2 and SEQ on this machine
	@$(BIN)/oraculo bench

bench-peers: $(STAMP) ## the same beside Celery, Dramatiq, Temporal and DBOS; SUITE=redis, rabbitmq, nats, kafka, postgres, celery, temporal or fibo
	@benchmarks/setup.sh && $(BIN)/python benchmarks/run.py --suite $(SUITE) --json benchmarks/results/latest-$(SUITE).json

docs: $(STAMP) ## write the generated parts of docs/, then check that docs and code agree
	@$(BIN)/python -m tools.docs.generate
	@$(BIN)/pytest tests/test_docs.py

.venv-site/.installed: requirements-site.lock $(STAMP)
	@echo "== installing MkDocs (pinned with hashes in requirements-site.lock)"
	@test -x .venv-site/bin/python || $(BIN)/python -m venv .venv-site
	@$(BIN)/uv pip install --quiet --python .venv-site/bin/python --require-hashes -r requirements-site.lock
	@touch $@

site: .venv-site/.installed ## the documentation as a site in site/: built strictly, and it gets nothing from another host
	@$(BIN)/python -m tools.docs.site site

recording: $(STAMP) ## docs/images/run.gif: a run on the real dashboard, event by event, in Chromium
	@$(BIN)/python -m tools.docs.recording

dashboards: $(STAMP) ## write the dashboard, the alert rules and their tests from tools/observability
	@$(BIN)/python -m tools.observability.generate

chart: $(STAMP) ## write README and schema of the Helm chart from its values.yaml
	@$(BIN)/python -m tools.chart.generate

protos: $(STAMP) ## write the descriptors of the gRPC services from their .proto
	@$(BIN)/python -m tools.protos

services: services-tests services-kubernetes services-vault ## every server of every suite (half an hour once)

services-tests: $(STAMP) ## the servers of `make test`: installs what is missing and can be had
	@echo "== servers for tests"
	@$(BIN)/python -m tools.servers.install
	@echo "cases of CEL in $$($(BIN)/python -m tools.cel_cases)"

services-image: $(STAMP) ## what `make test-image` needs: buildah, podman and a base image of Debian packages
	@$(BIN)/python -m tools.image.debian_base

test-image: $(STAMP) services-image ## build both images without a container engine, run them read-only, drain them
	@$(BIN)/pytest tests/deploy/image

test-release: $(STAMP) ## install wheel and source archive into empty environments of Python 3.11, 3.12 and 3.13, run the demo
	@$(BIN)/pytest tests/deploy/release

release: $(STAMP) ## wheel, source archive, SBOM and checksums in dist/, then what still stands against a tag
	@$(BIN)/python -m tools.release.build
	@$(BIN)/python -m tools.release.ready

services-kubernetes: $(STAMP) ## builds a Kubernetes for tests: API server, controllers, scheduler, etcd, kwok, kubectl (twenty minutes once)
	@echo "== kubernetes for tests"
	@$(BIN)/python -m tools.servers.kubernetes

test-kubernetes: $(STAMP) services-kubernetes ## the chart and its scripts on a real API server with fake nodes
	@ORACULO_TEST_KUBERNETES=1 $(BIN)/pytest tests/kubernetes

services-vault: $(STAMP) ## builds a Vault for tests (ten minutes once)
	@echo "== Vault for tests"
	@$(BIN)/python -m tools.servers.vault

test-vault: $(STAMP) services-vault ## references to secrets in a real Vault
	@ORACULO_TEST_VAULT=1 $(BIN)/pytest tests/vault

chaos: $(STAMP) services-tests ## every test of faults in its long form, to the end; goes on where it stopped (KILLS=30)
	@$(BIN)/python -m tools.chaos --kills $(KILLS)

soak: $(STAMP) services-tests ## MESSAGES through the in-process broker and Redis Streams with retention on: does anything grow?
	@$(BIN)/python -m benchmarks.soak --broker memory --messages $(MESSAGES) --folder .soak/memory
	@$(BIN)/python -m benchmarks.soak --broker redis --messages $(MESSAGES) --folder .soak/redis

fuzz: $(STAMP) ## what chance makes of messages, documents and requests, for FUZZ seconds a reader (60: about an hour on one core)
	@ORACULO_FUZZ_SECONDS=$(FUZZ) ORACULO_FUZZ_SEED=$${ORACULO_FUZZ_SEED:-$$(date +%s)} ORACULO_TEST_EXAMPLES=$(EXAMPLES) \
	  $(BIN)/pytest -n $(JOBS) --dist worksteal tests/security/test_fuzz.py tests/security/test_fuzz_routes.py tests/api/test_schemathesis.py

bench-record: TODAY := $(shell date +%F)
bench-record: $(STAMP) ## on a quiet machine: Windmill's suite beside its peers, the parts of the model, and docs/performance.md from them
	@benchmarks/setup.sh && $(BIN)/python benchmarks/run.py --suite fibo --quiet-wait 60 --json benchmarks/results/$(TODAY)-fibo.json
	@$(BIN)/python benchmarks/report.py --into benchmarks/RESULTS.md benchmarks/results/$(TODAY)-fibo.json
	@$(BIN)/python -m benchmarks.scaling_parts --json benchmarks/results/$(TODAY)-parts.json
	@$(BIN)/python -m benchmarks.scaling_model --parts benchmarks/results/$(TODAY)-parts.json --json benchmarks/results/$(TODAY)-scaling.json
	@$(BIN)/python -m benchmarks.performance

bench-table: TODAY := $(shell date +%F)
bench-table: $(STAMP) ## on a quiet machine, at most 20 minutes: what is promised to be fast, beside what is seen
	@benchmarks/setup.sh || echo "rows that need what is missing have no figure"
	@$(BIN)/python -m benchmarks.table --json benchmarks/results/$(TODAY)-table.json
	@$(BIN)/python -m benchmarks.performance

bench-neighbours: $(STAMP) ## p99 of a tenant beside one at 50 times its quota, 1,100 half-open connections, 200 slow bodies
	@$(BIN)/python -m benchmarks.neighbours

hooks: $(STAMP) ## install the pre-commit and commit-msg hooks
	@$(BIN)/pre-commit install

lock: $(STAMP) ## refresh requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-emit-find-links --all-extras --group dev pyproject.toml -o requirements.lock
	@echo mkdocs-material | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-emit-find-links - -o requirements-site.lock
	@echo uv | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-emit-find-links - -o requirements-uv.lock

clean: ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
