"""The files of the explorer: no token, a strict policy, and nothing but what is in the wheel."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import worlddb
from faces.http.serving import Site, serving
from worlddb import Memory
from worlddb.faces.http.access_tokens import AccessToken, make_access, token_digest

FOLDER = Path(worlddb.__file__).parent / "faces" / "http" / "pages"
BYTES_MAX = 700_000


@pytest.fixture
def guarded() -> Iterator[Site]:
    ada = AccessToken(name="ada", digest=token_digest(b"ada-token"), bounds={"user_id": ("ada",)})
    with (
        Memory(":memory:", embedder="none") as memory,
        serving(memory, make_access(host="127.0.0.1", tokens=(ada,))) as site,
    ):
        yield site


def test_pages_need_no_token_and_have_a_strict_policy(guarded: Site) -> None:
    for path in ("/", "/ui/app.js", "/ui/style.css", "/ui/vendor/preact-htm.js"):
        answer = guarded.get(path)
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert guarded.get("/").headers["content-type"].startswith("text/html")


def test_a_page_that_has_not_changed_is_not_sent_again(guarded: Site) -> None:
    tag = guarded.get("/ui/app.js").headers["etag"]
    again = guarded.send("GET", "/ui/app.js", headers={"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    # For the icon a browser would ask at each key of a search, which changes the address.
    assert guarded.get("/ui/icon.svg").headers["cache-control"] == "max-age=3600"


@pytest.mark.parametrize("path", ["/ui/", "/ui/nothing.js", "/ui/../explorer.py", "/ui/%2e%2e/x"])
def test_nothing_else_is_served(guarded: Site, path: str) -> None:
    assert guarded.get(path).status == 404


def test_who_the_caller_is_needs_the_token(guarded: Site) -> None:
    assert guarded.get("/v1/access").status == 401
    told = guarded.as_("ada-token").get("/v1/access").data
    assert told["token"] == "ada"
    assert (told["read_only"], told["admin"], told["bounds"]) == (
        False,
        False,
        {"user_id": ["ada"]},
    )


def test_the_pages_are_small_and_ask_no_other_host() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < BYTES_MAX
    for path in files:
        if path.suffix in (".js", ".html", ".css"):
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
            assert not re.search(r"https?://", text), path.name
            assert "eval(" not in text
            assert "localStorage" not in text


def test_every_part_of_a_score_has_a_meaning_on_the_page() -> None:
    ranking = Path(worlddb.__file__).parent / "index" / "ranking.json"
    weights = json.loads(ranking.read_text(encoding="utf-8"))["weights"]
    script = (FOLDER / "hit.js").read_text(encoding="utf-8")
    meanings = script.partition("const MEANING = {")[2].partition("};")[0]
    assert [name for name in weights if f"{name}: " not in meanings] == []
