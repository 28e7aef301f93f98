# Everything a person or CI needs. Only Python 3.11+, git and make must be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: run demo test fuzz outside lint bench clean

$(READY): pyproject.toml
	@echo "installing into .venv; this takes about a minute"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(READY)

run: $(READY) ## MCP and REST on http://127.0.0.1:8765, on a store in .worlddb/
	mkdir -p .worlddb
	$(BIN)/worlddb serve --db .worlddb/memory.db

demo: $(READY) ## the Tesla scenario: supersession, contradiction, two clocks, proof
	$(BIN)/python examples/tesla.py

test: $(READY) ## every test, in two processes; about five minutes on 2 cores
	$(BIN)/python -m pytest -n 2 --dist loadfile

fuzz: $(READY) ## the property tests, much deeper
	WORLDDB_FUZZ=deep $(BIN)/python -m pytest tests/property

outside: $(READY) ## the MCP Inspector and the official conformance suite (from npm, into ~/.cache)
	$(BIN)/python tests/outside/install.py
	$(BIN)/python -m pytest tests/outside

lint: $(READY) ## style, types, tidy rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_tidy.py

bench: $(READY) ## every benchmark at full size; takes about a quarter of an hour and 4 GB of disk
	$(BIN)/python -m bench

clean:
	rm -rf .venv
