"""The extra `server`: the packages that `worlddb mcp` and `worlddb serve` need."""

from __future__ import annotations

from importlib.util import find_spec

from worlddb.errors import InvalidInputError

SERVER_PACKAGES = ("mcp", "pydantic", "starlette", "uvicorn")


SERVER_REMEDY = 'pip install "worlddb[server]"'


def require_server_extra(command: str) -> None:
    """Check that the packages of a server are installed, before any of them is imported.

    Raises:
        InvalidInputError: some are missing; the message says how to install them.
    """
    missing = [name for name in SERVER_PACKAGES if not is_installed(name)]
    if missing:
        raise InvalidInputError(
            f"{command}: needs {', '.join(missing)} (not installed); run: {SERVER_REMEDY}"
        )


def is_installed(name: str = "mcp") -> bool:
    """Return whether a package of the extra is installed."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
