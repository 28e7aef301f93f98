"""Store choice: which store a test runs on that opens one in memory.

    @pytest.mark.stores             the test runs twice: in memory, and in PostgreSQL
    @pytest.mark.stores("memory")   the test is about memory, and runs nowhere else
    pytest --store postgres …       every other test runs in PostgreSQL alone

In PostgreSQL, `worlddb.open(":memory:")` opens a new tenant of a server that the tests start once a
process. Where no server can be had, the test is skipped and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import worlddb.engine
from thinning import DEEP
from worlddb.store.backends import IN_MEMORY

KINDS = ("memory", "postgres")
TENANTS = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the command line choose the store."""
    parser.addoption("--store", choices=KINDS, help="the store of all tests that use memory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each store that was asked for."""
    marker, chosen = metafunc.definition.get_closest_marker("stores"), _chosen(metafunc.config)
    if marker is not None:
        kinds = [kind for kind in marker.args or KINDS if chosen in (None, kind)]
        metafunc.parametrize("store_kind", kinds, indirect=True)


def _chosen(config: pytest.Config) -> str | None:
    found: str | None = config.getoption("--store")
    return found


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Yield the address of a server, or skip the test and say why there is none."""
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    from store.postgres.server import UnavailableError, running_server

    running = running_server()
    try:
        address = running.__enter__()
    except UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")
    yield address
    running.__exit__(None, None, None)


@pytest.fixture
def new_tenant(server: str) -> Callable[[], str]:
    """Return a function that returns the address of a tenant that no other test has."""
    return lambda: f"{server}&tenant=test{next(TENANTS)}"


@pytest.fixture(autouse=True)
def store_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of the store that this test has wherever it opens one in memory."""
    kind: str = getattr(request, "param", None) or _chosen(request.config) or "memory"
    if kind == "postgres":
        new_tenant = request.getfixturevalue("new_tenant")
        real: Any = vars(worlddb.engine)["open_store"]

        def opened(address: str, **options: Any) -> Any:
            return real(new_tenant() if address == IN_MEMORY else address, **options)

        monkeypatch.setattr(worlddb.engine, "open_store", opened)
    return kind


def fewer(kind: str, usual: int, on_server: int) -> int:
    """Return how often something is tried: less often where each call is a way to a server."""
    return on_server if kind == "postgres" and not DEEP else usual
