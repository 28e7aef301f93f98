"""The page about serving: what is there is on it, and what is on it is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from worlddb.faces.call_parts import K_MAX, MESSAGES_MAX, PAGE_MAX, TEXT_CHARS_MAX
from worlddb.faces.http.access_tokens import KEYS
from worlddb.faces.http.auth_middleware import GUESS_EVERY_S, GUESSES_MAX
from worlddb.faces.http.http_problems import STATUS_BY_ERROR, TYPE_BY_STATUS
from worlddb.faces.http.http_server import GRACE_S
from worlddb.faces.http.request_limits import (
    ASKING_MAX,
    BODY_BYTES_MAX,
    BODY_S_MAX,
    CONNECTIONS_MAX,
    GROUPED_MAX,
    HEAD_BYTES_MAX,
    HEAD_S_MAX,
    HEADERS_MAX,
    KEEP_ALIVE_S,
    PATIENCE_S,
    READERS_MAX,
    SEARCHERS_MAX,
    STALLED_S_MAX,
    STRANGER_KEEP_ALIVE_S,
    STRANGERS_MAX,
    WRITERS_MAX,
)
from worlddb.faces.http.rest_routes import REST_CALLS
from worlddb.faces.http.server_metrics import HELP

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")

ROWS = [line for line in PAGE.splitlines() if re.match(r"\| [0-9]{3}", line)]


def test_every_operation_metric_and_problem_is_on_the_page() -> None:
    for call in REST_CALLS:
        row = next(one for one in PAGE.splitlines() if f"`{call.method} {call.path}`" in one)
        assert f"| `{call.name}`" in row
        inside = [one.name for one in call.parameters if one.type not in ("scope", "id")]
        assert [name for name in inside if f"`{name}`" not in row] == [], call.name
    assert [name for name in HELP if f"`{name}`" not in PAGE] == []
    for status, name in [*TYPE_BY_STATUS.items(), *STATUS_BY_ERROR.values()]:
        row = next(one for one in ROWS if str(status) in one.split("|")[1])
        assert f"`{name}`" in row, (status, name)


def test_the_limits_on_the_page_are_those_that_hold() -> None:
    assert f"| body | {BODY_BYTES_MAX >> 20} MiB" in PAGE
    assert f"| one text | {TEXT_CHARS_MAX:,} characters" in PAGE
    assert f"| messages of a chat | {MESSAGES_MAX:,} |" in PAGE
    assert f"| `k`, `limit` | {K_MAX:,}, {PAGE_MAX:,} |" in PAGE
    assert f"| {HEAD_BYTES_MAX >> 10} KiB, {HEADERS_MAX} headers |" in PAGE
    assert f"| {HEAD_S_MAX:.0f} s, {BODY_S_MAX:.0f} s |" in PAGE
    assert f"| connections | {CONNECTIONS_MAX:,};" in PAGE
    most = READERS_MAX, SEARCHERS_MAX, GROUPED_MAX, WRITERS_MAX, ASKING_MAX
    at_once = "{} reads, {} recall, {} short writes, {} other writes ({} if a model extracts)"
    at_once = at_once.format(*most)
    assert f"| {at_once}; the others wait up to {PATIENCE_S:.0f} s, then get 503 |" in PAGE
    assert (
        f"closed after {KEEP_ALIVE_S} s; without a valid token after {STRANGER_KEEP_ALIVE_S} s"
        in PAGE
    )
    assert f"| connections of one address without a valid token | {STRANGERS_MAX};" in PAGE
    assert f"does not read its answer | closed after {STALLED_S_MAX:.0f} s |" in PAGE
    assert GUESS_EVERY_S == 1
    assert f"| {GUESSES_MAX}, then one per second; beyond that 429 |" in PAGE
    assert f"finishes open requests for up to {GRACE_S} s" in PAGE


def test_the_files_of_tokens_on_the_page_use_every_key_there_is() -> None:
    shown = re.findall("```toml\n(.*?)```", PAGE, re.DOTALL)
    used = {key for file in shown for token in tomllib.loads(file)["token"] for key in token}
    assert used | {"app_id", "run_id"} == set(KEYS)
