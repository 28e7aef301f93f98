"""One running server for each era, shared: a test keeps apart by the user it writes for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from .talking import ERAS, Era, Person, Talk, talking


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    chosen: Era = request.param
    return chosen


@pytest.fixture(scope="session")
async def talk(
    era: Era, anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Talk]:
    """A client that can ask its user."""
    path = tmp_path_factory.mktemp("mcp") / "memory.db"
    async with talking(path, "--search-fetch", era=era, person=Person()) as one:
        yield one


@pytest.fixture(scope="session")
async def mute(
    era: Era, anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Talk]:
    """A client that cannot ask."""
    path = tmp_path_factory.mktemp("mute") / "memory.db"
    async with talking(path, era=era) as one:
        yield one


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user that no other test writes for."""
    return str(request.node.name)
