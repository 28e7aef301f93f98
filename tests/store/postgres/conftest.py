"""One PostgreSQL server for the tests of a process, and a tenant for each test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

TENANTS = count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Yield the address of a server, or skip the test and say why there is none."""
    pytest.importorskip("psycopg", reason="the driver psycopg is not installed")
    from .server import UnavailableError, running_server

    running = running_server()
    try:
        address = running.__enter__()
    except UnavailableError as error:
        pytest.skip(f"no PostgreSQL: {error}")
    yield address
    running.__exit__(None, None, None)


@pytest.fixture
def address(server: str) -> str:
    """Return the address of a tenant that no other test has."""
    return f"{server}&tenant=test{next(TENANTS)}"
