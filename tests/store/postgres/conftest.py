"""A tenant for each test on the server of this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def address(new_tenant: Callable[[], str]) -> str:
    """Return the address of a tenant that no other test has."""
    return new_tenant()
