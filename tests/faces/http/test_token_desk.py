"""Tokens over REST: for administrators, shown once, at once in force; last use and quotas."""

from __future__ import annotations

import inspect
import json
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from worlddb import Client, IssuedToken, Memory, TokenList
from worlddb.errors import RejectedError
from worlddb.faces.call_models import result_class
from worlddb.faces.call_parts import Call
from worlddb.faces.http import token_file
from worlddb.faces.http.access_tokens import Access, make_access, read_tokens
from worlddb.faces.http.token_desk import TokenDesk
from worlddb.faces.http.token_file import (
    USES_END,
    TokenUses,
    add_token,
    revoke_token,
    rotate_token,
    uses_beside,
)
from worlddb.faces.server_calls import SERVER_CALLS

from .serving import Site, serving, token

ADA: dict[str, Any] = {"user_id": ["ada"]}


@dataclass
class Desk:
    """A server with a tokens file, called as an administrator."""

    root: Site
    path: str
    memory: Memory

    def as_new(self, name: str, **given: Any) -> Site:
        """Add a token and return the server as it is called with it."""
        answer = self.root.post("/v1/tokens", name=name, **given)
        assert answer.status == 200, answer.body
        return self.root.as_(answer.data["token"])

    def entry(self, name: str) -> dict[str, Any]:
        listed = self.root.get("/v1/tokens").data["tokens"]
        found: dict[str, Any] = next(one for one in listed if one["name"] == name)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    path = str(tmp_path / "tokens.toml")
    value = add_token(path, "root", bounds={}, role="administer")

    def read() -> Access:
        return make_access(host="127.0.0.1", tokens=read_tokens(path))

    with (
        Memory(":memory:", embedder="none", recluster="off") as memory,
        serving(memory, read(), tokens_file=path, read_access=read) as site,
    ):
        yield Desk(site.as_(value), path, memory)


@pytest.mark.parametrize("call", SERVER_CALLS, ids=lambda call: call.name)
def test_a_call_is_a_method_of_the_desk_with_the_same_parameters(call: Call) -> None:
    held = dict(inspect.signature(getattr(TokenDesk, call.name)).parameters)
    scopes = [one.name for one in call.parameters if one.type == "scope"]
    declared = [one for one in call.parameters if one.type != "scope"]
    assert ("scope" in held) == bool(scopes)
    assert set(held) - {"self", "scope"} == {one.name for one in declared}
    for one in declared:
        assert one.required == (held[one.name].default is inspect.Parameter.empty)
        assert one.required or one.default == held[one.name].default
    assert result_class(call).__name__ == call.result


def test_a_token_is_in_force_at_once_and_shown_once(desk: Desk) -> None:
    ada = desk.as_new("laptop", role="write", per_minute=500, **ADA)
    assert ada.post("/v1/memories", text="I like green tea.").status == 200
    assert ada.get("/v1/access").data["bounds"] == {"user_id": ["ada"]}
    listed = desk.root.get("/v1/tokens")
    assert ada.token not in listed.body.decode()
    assert ada.token not in Path(desk.path).read_text()
    entry = desk.entry("laptop")
    assert (entry["role"], entry["bounds"], entry["state"]) == ("write", ADA, "valid")
    assert datetime.fromisoformat(entry["last_used"]) <= datetime.now(UTC)
    rotated = desk.root.post("/v1/tokens/rotate", name="laptop").data["token"]
    assert ada.get("/v1/access").status == 401
    assert ada.as_(rotated).get("/v1/access").status == 200
    assert desk.root.post("/v1/tokens/revoke", name="laptop").data == {"name": "laptop"}
    assert ada.as_(rotated).get("/v1/access").status == 401
    gone = desk.root.post("/v1/tokens/revoke", name="laptop").error
    assert gone.startswith("404 not_found: the tokens file: there is no token 'laptop'")
    last = desk.root.post("/v1/tokens/revoke", name="root").error
    assert last == "409 conflict: the tokens file: 'root' is the last token; add another one first"


def test_a_wrong_token_is_told_and_changes_nothing(desk: Desk) -> None:
    before = Path(desk.path).read_text()
    for given in ({"role": "write"}, {"tenant": "acme", **ADA}, {"expires": "soon", **ADA}):
        assert desk.root.post("/v1/tokens", name="new", **given).status == 400
    assert desk.root.post("/v1/tokens", name="root", **ADA).status == 409
    assert desk.root.post("/v1/tokens", name="x" * 101, **ADA).status == 400
    assert Path(desk.path).read_text() == before


def test_tokens_are_for_an_administrator_of_the_whole_server(desk: Desk) -> None:
    ada = desk.as_new("ada", **ADA)
    assert ada.get("/v1/access").data["manages_tokens"] is False
    assert ada.get("/v1/tokens").status == 403
    for path in ("/v1/tokens", "/v1/tokens/rotate", "/v1/tokens/revoke"):
        assert ada.post(path, name="root").status == 403
        assert Site(ada.host, ada.port).post(path, name="root").status == 401
    with Memory(":memory:", embedder="none") as memory:
        tokens = [
            token("reader", admin=True, read_only=True),
            token("tenant", admin=True, tenant="acme"),
            token("page", admin=True, origin="web"),
            token("root", admin=True),
        ]
        with serving(memory, make_access(host="127.0.0.1", tokens=tokens)) as site:
            reader = site.as_("reader")
            assert len(reader.get("/v1/tokens").data["tokens"]) == 4
            # It would make itself a token that is trusted in full.
            told = site.as_("page").post("/v1/tokens", name="new", role="administer").error
            assert told.startswith("403 rejected: only a caller who is trusted in full")
            assert reader.post("/v1/tokens", name="new", **ADA).status == 403
            assert site.as_("tenant").get("/v1/tokens").status == 403
            told = site.as_("root").post("/v1/tokens", name="new", **ADA).error
            assert told.startswith("409 conflict: this server has no tokens file; make one with")


def test_the_clients_have_the_calls_of_a_server(desk: Desk) -> None:
    with Client(desk.root.url, token=desk.root.token) as client:
        until = datetime(2030, 1, 31, tzinfo=UTC)
        made = client.add_token("phone", role="read", expires=until, user_id="ada")
        assert isinstance(made, IssuedToken)
        listed = client.tokens()
        assert isinstance(listed, TokenList)
        assert [one.name for one in listed] == ["root", "phone"]
        assert listed.tokens[1].expires == until
        assert client.access().manages_tokens
        with Client(desk.root.url, token=made.token) as phone:
            assert phone.access().role == "read"
            with pytest.raises(RejectedError, match="administrator"):
                phone.tokens()
        assert client.rotate_token("phone").token != made.token
        assert client.revoke_token("phone").name == "phone"


def test_a_token_writes_as_many_memories_in_a_day_as_it_may(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "_day", lambda _: "the day of this test")
    ada = desk.as_new("ada", memories_per_day=2, **ADA)
    first = ada.post("/v1/memories", text="I like green tea.").data
    assert ada.post("/v1/memories", text="I like green tea.").data["created"] is False
    assert ada.post("/v1/memories", text="").status == 400
    assert desk.entry("ada")["written_today"] == 1
    assert ada.post(f"/v1/memories/{first['id']}/amend", text="I like black tea.").status == 200
    late = ada.post("/v1/memories", text="I like milk.")
    assert late.error == (
        "429 too_many_requests: this token may write 2 memories a day; the next day begins at "
        "midnight UTC"
    )
    assert 0 < int(late.headers["retry-after"]) <= 86_400
    assert ada.tool("memory_write", text="I like rum.") == (
        False,
        "this token may write 2 memories a day; the next day begins at midnight UTC",
    )
    assert ada.post("/v1/recall", query="tea").status == 200


def test_a_token_makes_as_many_requests_in_a_minute_as_it_may(desk: Desk) -> None:
    ada = desk.as_new("ada", per_minute=1, **ADA)
    assert ada.get("/v1/access").status == 200
    late = ada.get("/v1/access")
    assert late.error.startswith(
        "429 too_many_requests: this token may make 1 requests in a minute"
    )
    assert 0 < int(late.headers["retry-after"]) <= 60


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 22, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_the_count_of_a_day_begins_anew_at_midnight(tmp_path: Path) -> None:
    clock, path = Clock(), str(tmp_path / "tokens.toml")
    ada = token("ada", memories_per_day=1)
    uses = TokenUses(path, clock)
    assert uses.take(ada) == 0
    assert uses.take(ada) == 2 * 3_600
    uses.save([ada])
    again = TokenUses(path, clock)
    assert again.take(ada) == 2 * 3_600
    clock.now += timedelta(hours=2)
    assert again.take(ada) == 0
    assert again.of(ada) == (None, 1)
    again.give_back(ada)
    assert again.take(ada) == 0


def test_uses_are_written_now_and_then_and_for_their_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, path = Clock(), str(tmp_path / "tokens.toml")
    file = Path(path + USES_END)
    ada, bob = token("ada"), token("bob")
    uses = TokenUses(path, clock)
    for one in (ada, bob):
        uses.note(one)
    uses.save([ada, bob], if_due=True)
    assert not file.exists()
    monkeypatch.setattr(token_file, "SAVE_EVERY_S", 0.0)
    uses.save([ada], if_due=True)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {one: use.last_used for one, use in uses_beside(path).items()} == {ada.digest: clock.now}
    # Another server has seen it later.
    other, clock.now = TokenUses(path, clock), clock.now + timedelta(days=1)
    other.note(ada)
    other.save([ada])
    uses.note(bob)
    uses.save([ada, bob])
    assert uses_beside(path)[ada.digest].last_used == clock.now
    file.write_text(json.dumps({"zz": 1}))
    assert uses_beside(path) == {}


def test_a_server_that_ends_has_written_the_last_uses(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    value = add_token(path, "root", bounds={}, role="administer")
    access = make_access(host="127.0.0.1", tokens=read_tokens(path))
    with Memory(":memory:", embedder="none") as memory:
        with serving(memory, access, tokens_file=path) as site:
            site.as_(value).get("/v1/access")
        assert [*uses_beside(path)] == [access.tokens[0].digest]


def test_changes_of_several_at_once_are_all_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    add_token(path, "gone", bounds=ADA, role="read")
    add_token(path, "turned", bounds=ADA, role="read")
    old = read_tokens(path)[1].digest
    names = [f"t{number}" for number in range(8)]
    made = {"bounds": ADA, "role": "read"}
    threads = [
        threading.Thread(target=revoke_token, args=(path, "gone")),
        threading.Thread(target=rotate_token, args=(path, "turned")),
        *(threading.Thread(target=add_token, args=(path, name), kwargs=made) for name in names),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = read_tokens(path)
    assert {one.name for one in tokens} == {"turned", *names}
    assert old not in {one.digest for one in tokens}
