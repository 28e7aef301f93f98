"""The page about serving: what is there is on it, and what is on it is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from worlddb.faces.http.bodies import BODY_BYTES_MAX, BODY_S_MAX, HEAD_BYTES_MAX, HEADERS_MAX
from worlddb.faces.http.connection import HEAD_S_MAX
from worlddb.faces.http.metrics import HELP
from worlddb.faces.http.operations import OPERATIONS
from worlddb.faces.http.problems import BY_ERROR, BY_STATUS
from worlddb.faces.http.server import CONNECTIONS_MAX, GRACE_S, KEEP_ALIVE_S
from worlddb.faces.http.threads import (
    PATIENCE_S,
    READERS_MAX,
    SEARCHERS_MAX,
    TOOLS_MAX,
    WRITERS_MAX,
)
from worlddb.faces.http.tokens import KEYS

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")

ROWS = [line for line in PAGE.splitlines() if re.match(r"\| [0-9]{3}", line)]


def test_every_operation_metric_and_problem_is_on_the_page() -> None:
    for operation in OPERATIONS:
        assert f"| `{operation.method} {operation.path}` | `{operation.name}`" in PAGE
    assert [name for name in HELP if f"`{name}`" not in PAGE] == []
    for status, name in [*BY_STATUS.items(), *BY_ERROR.values()]:
        row = next(one for one in ROWS if str(status) in one.split("|")[1])
        assert f"`{name}`" in row, (status, name)


def test_the_limits_on_the_page_are_those_that_hold() -> None:
    assert f"| body | {BODY_BYTES_MAX >> 20} MiB" in PAGE
    assert f"| {HEAD_BYTES_MAX >> 10} KiB, {HEADERS_MAX} headers |" in PAGE
    assert f"| {HEAD_S_MAX:.0f} s, {BODY_S_MAX:.0f} s |" in PAGE
    assert f"| connections | {CONNECTIONS_MAX:,};" in PAGE
    most = READERS_MAX, SEARCHERS_MAX, WRITERS_MAX, TOOLS_MAX
    at_once = "{} reads, {} recalls, {} writes, {} tool calls".format(*most)
    assert f"| {at_once}; the others wait up to {PATIENCE_S:.0f} s, then 503 |" in PAGE
    assert f"closed after {KEEP_ALIVE_S} s" in PAGE
    assert f"finished ({GRACE_S} s at most)" in PAGE


def test_the_file_of_tokens_on_the_page_uses_every_key_there_is() -> None:
    shown = re.search("```toml\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    used = {key for token in tomllib.loads(shown[1])["token"] for key in token}
    assert used | {"app_id", "run_id"} == set(KEYS)
