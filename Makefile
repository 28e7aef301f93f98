# Everything a person or CI needs. Only Python 3.11+, git and make must be there.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
# Two stamps: what `make run` needs is a third of what the tests need.
SERVER := .venv/.server
READY := .venv/.ready

.PHONY: run demo test fuzz chaos outside lint bench clean python

# With an older Python, pip searches for minutes for versions that would fit before it gives up.
python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("WorldDB needs Python 3.11 or newer, but $(PYTHON) is %d.%d. Name another one: make PYTHON=python3.12 ..." % v[:2])'

$(SERVER): pyproject.toml | python
	@echo "installing into .venv; this takes about half a minute"
	$(PYTHON) -m venv .venv
	$(PIP) ".[server]"
	touch $(SERVER)

$(READY): pyproject.toml | python
	@echo "installing into .venv with the development tools; this takes about a minute"
	$(PYTHON) -m venv .venv
	$(PIP) ".[dev]"
	touch $(SERVER) $(READY)

run: $(SERVER) ## MCP and REST on http://127.0.0.1:8765, on a store in .worlddb/
	mkdir -p .worlddb
	$(BIN)/worlddb serve --db .worlddb/memory.db

demo: $(SERVER) ## the Tesla scenario: supersession, contradiction, two clocks, proof
	$(BIN)/python examples/tesla.py

test: $(READY) ## every test but those of `make outside`, in two processes; about eight minutes on 2 cores
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

fuzz: $(READY) ## every thinned test in full, and the engine's tests on PostgreSQL
	WORLDDB_FUZZ=deep $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $$(grep -rl --include='test_*.py' '^from thinning import' tests)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --store postgres tests/property tests/engine tests/ontology tests/query tests/memory

chaos: $(READY) ## kills, power cuts, copies, flipped bytes, interrupts, hostile input, a soak; 45 minutes
	cd tests && ../$(BIN)/python -m chaos

outside: $(READY) ## outside referees: MCP (from npm) and agent frameworks (from PyPI), into ~/.cache
	$(BIN)/python tests/outside/install.py
	$(BIN)/python tests/referees/install.py
	$(BIN)/python -m pytest tests/outside tests/referees -rsP

lint: $(READY) ## style, types, tidy rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_tidy.py

bench: $(READY) ## every benchmark at full size; takes about a quarter of an hour and 4 GB of disk
	$(BIN)/python -m bench

clean:
	rm -rf .venv
