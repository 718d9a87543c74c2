# Every target sets up what it needs. On a fresh machine with Python 3.11 and Java 17: `make demo`, `make test`.
# Pass options on with ARGS:  make test ARGS="-k feed -x"   make demo ARGS="--json report.json"

SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
DOCS_VENV := .docs-venv
STORE_VENV := .store-venv
ARGS  ?=

# The first interpreter that runs and is new enough; version managers leave names on PATH that do not run.
CANDIDATES := python3.11 python3 python3.12 python3.13 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in $(CANDIDATES); do "$$name" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$name"; break; }; done)
FOUND   = $(shell "$(or $(PYTHON),python3)" -c 'import sys; print("Python %d.%d" % sys.version_info[:2])' 2>/dev/null || echo none)

.PHONY: setup demo demo-kafka test coverage test-long test-live test-kafka test-cluster test-store test-delta test-versions check bench docs lock clean python java
.NOTPARALLEL:
.DEFAULT_GOAL := setup

setup: $(VENV)/.dev-installed

demo: java $(VENV)/.installed
	$(BIN)/jettison demo $(ARGS)

# The same on a real broker, from Maven's jars.
demo-kafka: java $(VENV)/.installed
	$(BIN)/jettison demo --kafka $(ARGS)

# Files in the order of tests/conftest.py: by the number of their tests, the long ones on Spark would come last, and one process wait for the other.
PYTEST = python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
QUICK  = -m "not live and not long"
test: java $(VENV)/.dev-installed
	$(BIN)/$(PYTEST) $(or $(ARGS),$(QUICK))

# The same tests, and the share of the package's lines that they run; what runs in processes of its own is left out.
coverage: java $(VENV)/.dev-installed
	$(BIN)/$(PYTEST) --cov=jettison --cov-report=term:skip-covered $(or $(ARGS),$(QUICK))

# Drivers of their own, killed or not, the laboratory on Spark, the controller for minutes, what takes seconds and runs no other
# line, and of every policy what plain `make test` runs for some.
test-long: java $(VENV)/.dev-installed
	$(BIN)/$(PYTEST) tests -m "long and not live" $(ARGS)

# Alone and one after the other, because latency is looked at; on a shared machine what fails once is tried again.
test-live: java $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m live $(ARGS) || $(BIN)/python -m pytest -m live --last-failed $(ARGS)

# On a real broker, from Maven's jars: left out by plain `make test`, because it downloads them.
test-kafka: java $(VENV)/.dev-installed
	JETTISON_TEST_KAFKA=1 $(BIN)/python -m pytest tests/kafka $(ARGS)

# On a master and workers of their own: left out by plain `make test`, because it takes six JVMs and two minutes.
test-cluster: java $(VENV)/.dev-installed
	JETTISON_TEST_CLUSTER=1 $(BIN)/python -m pytest tests/cluster $(ARGS)

# On an S3 store of its own: left out by plain `make test`, because it downloads what Spark needs for S3.
test-store: java $(VENV)/.dev-installed $(STORE_VENV)/.installed
	JETTISON_TEST_STORE=$(STORE_VENV)/bin/python $(BIN)/python -m pytest tests/store $(ARGS)

# Answers in a Delta table, merged ones too, on the newest Spark that it has a release for.
test-delta: java $(VENV)-4.2.1/.installed
	JETTISON_TEST_DELTA=1 JETTISON_TEST_CLUSTER=1 $(VENV)-4.2.1/bin/python -m pytest tests/delta tests/cluster/test_kafka_job.py -k delta $(ARGS)

# On older Sparks, the tests in which a difference would show; plain `make test` runs the newest. One: SPARKS=4.0.5
OLDER  := 4.0.5 4.1.4 4.2.1
SPARKS ?= $(OLDER)
VERSION_TESTS = $(patsubst %,tests/spark/test_%.py,versions guard decisions channel accounting shedder replay exactness judged aggregates golden)
test-versions: java $(SPARKS:%=$(VENV)-%/.installed)
	for spark in $(SPARKS); do $(VENV)-$$spark/bin/$(PYTEST) $(or $(ARGS),$(VERSION_TESTS) -m "not live") || exit 1; done

check: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p jettison
	$(BIN)/lint-imports

# All that docs/benchmarks.md and docs/rivals.md are made of, and both pages: many hours, of which MINUTES beside rivals. What
# is there already beside rivals is gone on with. ARGS runs one benchmark: ARGS="cost --only native"
MEASURED := scale cost harm exactness replay faults endurance
MINUTES  ?= 600
bench: java $(VENV)/.installed
ifneq ($(strip $(ARGS)),)
	$(BIN)/jettison bench $(ARGS)
else
	mkdir -p docs/results docs/rivals
	missed=0; trap 'exit 130' INT; for name in $(MEASURED); do $(BIN)/jettison bench $$name --json docs/results/$$name-all.json || missed=1; done; \
	$(BIN)/jettison bench prove --minutes $(MINUTES) --resume --json docs/rivals/all.json || missed=1; \
	$(BIN)/python -m jettison.lab.bench.page docs/benchmarks.md docs/results || missed=1; \
	$(BIN)/python -m jettison.lab.prove.page docs/rivals > docs/rivals.md.new && mv docs/rivals.md.new docs/rivals.md && exit $$missed
endif

# The site, into site/, with links checked. Its reference is read from the source: neither Spark nor Java is needed.
docs: $(DOCS_VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict $(ARGS)

# Names, versions and hashes only: where packages come from is each machine's own setting, never in the repository.
COMPILE = .lock-venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: python
	$(PYTHON) -m venv --clear .lock-venv
	.lock-venv/bin/pip install --quiet uv
	$(COMPILE) $(ARGS) --group build -o requirements-build.lock
	$(COMPILE) $(ARGS) pyproject.toml --extra all --group run -c requirements-build.lock -o requirements.lock
	$(COMPILE) $(ARGS) --group dev -c requirements-build.lock -c requirements.lock -o requirements-dev.lock
	$(COMPILE) $(ARGS) --group docs -c requirements-build.lock -c requirements.lock -c requirements-dev.lock -o requirements-docs.lock
	$(COMPILE) $(ARGS) --group store -o requirements-store.lock
	for spark in $(OLDER); do echo "pyspark==$$spark" | $(COMPILE) --no-deps -; done > requirements-versions.lock
	@! grep -nE '://|--index|--find-links' requirements*.lock
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) $(OLDER:%=$(VENV)-%) $(DOCS_VENV) $(STORE_VENV) .lock-venv site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { echo 'Jettison needs Python 3.11 or newer, found $(FOUND): install Python 3.11, or name one with "make PYTHON=/path/to/python3.11".' >&2; exit 1; }

# By path and on the bare interpreter, so that it speaks before anything is downloaded.
java: python
	@"$(PYTHON)" -P src/jettison/java.py

$(VENV)/.created $(DOCS_VENV)/.created $(STORE_VENV)/.created: | python
	@"$(PYTHON)" -m venv --clear $(@D) || { echo 'Python cannot make a virtual environment: install its venv package (on Debian and Ubuntu: python3-venv).' >&2; exit 1; }
	@touch $@

INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation

$(VENV)/.installed: $(VENV)/.created requirements-build.lock requirements.lock pyproject.toml
	@echo 'Installing what Jettison needs, Spark among it, into $(VENV): one or two minutes, most of it downloads.'
	$(INSTALL) --require-hashes -r requirements-build.lock
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.dev-installed: $(VENV)/.installed requirements-dev.lock
	@echo 'Installing what tests and checks need into $(VENV): less than a minute.'
	$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

# An older Spark in an environment of its own, which takes all else from the usual one.
$(VENV)-%/.installed: requirements-versions.lock | $(VENV)/.dev-installed
	"$(PYTHON)" -m venv --clear $(@D)
	usual=$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])') && cd $(@D)/lib/python3*/site-packages && \
	  echo "import site; site.addsitedir('$$usual')" > usual.pth
	grep -A 1 '^pyspark==$*' requirements-versions.lock > $(@D)/spark.lock
	$(INSTALL:$(BIN)%=$(@D)/bin%) --require-hashes --no-deps -r $(@D)/spark.lock
	@touch $@

$(DOCS_VENV)/.installed $(STORE_VENV)/.installed: .%-venv/.installed: .%-venv/.created requirements-%.lock
	$(@D)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-$*.lock
	@touch $@
