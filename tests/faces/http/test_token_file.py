"""Tokens that are managed while a server runs: roles, origins, rates, and the file."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from faces.command import in_process
from worlddb import Memory
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.faces.http.access_tokens import Access, AccessToken, read_tokens, token_digest
from worlddb.faces.http.auth_middleware import RateLimit
from worlddb.faces.http.served_stores import CallerMemory, bound_memory
from worlddb.faces.http.server_metrics import ServerMetrics
from worlddb.faces.http.token_file import add_token, revoke_token, rotate_token, state_of, tokens_in

ADA = {"user_id": ["ada"]}


def test_a_token_is_added_rotated_and_revoked(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    first = add_token(path, "laptop", bounds=ADA, role="write", expires="2027-01-31T00:00:00Z")
    add_token(path, "root", bounds={}, role="administer")
    assert first not in Path(path).read_text()
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    laptop, root = read_tokens(path)
    assert (laptop.role, laptop.bounds, root.role) == ("write", {"user_id": ("ada",)}, "administer")
    assert laptop.expires == datetime(2027, 1, 31, tzinfo=UTC)
    assert state_of(laptop, datetime(2027, 2, 1, tzinfo=UTC)) == "expired"
    second = rotate_token(path, "laptop")
    access = Access(tokens=tuple(tokens_in(path)))
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert access.token_of(first.encode(), now) is None
    assert access.token_of(second.encode(), now) == read_tokens(path)[0]
    revoke_token(path, "laptop")
    assert [token.name for token in read_tokens(path)] == ["root"]
    with pytest.raises(ConflictError, match="last token"):
        revoke_token(path, "root")
    with pytest.raises(NotFoundError, match="known are: root"):
        rotate_token(path, "laptop")
    with pytest.raises(ConflictError, match="there is a token"):
        add_token(path, "root", bounds={}, role="administer")


def test_an_old_file_is_read_and_keeps_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    old = '# Ours\n[[token]]\n# of Ada\nname = "ada"\nvalue = "a-token-of-some-length"\n'
    path.write_text(f'{old}user_id = "ada"\nread_only = true\n')
    assert [token.role for token in read_tokens(str(path))] == ["read"]
    add_token(str(path), "bob", bounds={"user_id": ["bob"]}, role="curate", per_minute=5)
    rotate_token(str(path), "ada")
    text = path.read_text()
    assert text.startswith("# Ours\n[[token]]\n# of Ada\n")
    assert "a-token-of-some-length" not in text
    assert [token.per_minute for token in read_tokens(str(path))] == [None, 5]


@pytest.mark.parametrize(
    "wrong", ['role = "king"', "role = 1", 'origin = "pope"', "per_minute = 0", "per_minute = true"]
)
def test_a_wrong_key_is_told(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(f'[[token]]\nvalue = "a-token-of-some-length"\nuser_id = "ada"\n{wrong}\n')
    with pytest.raises(InvalidInputError, match="token 1: "):
        read_tokens(str(path))


def test_a_wrong_token_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    with pytest.raises(InvalidInputError):
        add_token(path, "nobody", bounds={}, role="write")
    assert list(tmp_path.iterdir()) == []


def test_roles_allow_what_they_say() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        done = memory.write("I live in Oslo.", user_id="ada")

        def caller(**more: Any) -> Memory:
            made = AccessToken(
                name="t", digest=token_digest(b"t"), bounds={"user_id": ("ada",)}, **more
            )
            return CallerMemory(bound_memory(memory, made), made, ServerMetrics())  # type: ignore[return-value]

        reader, writer, curator = caller(read_only=True), caller(curates=False), caller()
        for each in (reader, writer, curator):
            assert each.recall("Where do I live?")[0].node.id == done.id
        with pytest.raises(RejectedError, match="only read;"):
            reader.write("I like tea.")
        with pytest.raises(RejectedError, match="may curate"):
            writer.retire(done.id)
        assert writer.write("I like tea.").created
        crawler = caller(origin="web")
        assert memory.read(crawler.write("It rains.").id).origin == "web"
        with pytest.raises(RejectedError, match="more trusted"):
            crawler.retire(done.id)
        assert curator.retire(done.id).ids == (done.id,)


def test_a_rate_is_a_minutes_worth() -> None:
    now = [0.0]
    rates = RateLimit(clock=lambda: now[0])
    assert [rates.wait_s(b"a", 2) for _ in range(3)] == [0.0, 0.0, 30.0]
    assert rates.wait_s(b"b", 2) == 0.0
    now[0] = 30.0
    assert rates.wait_s(b"a", 2) == 0.0
    assert rates.wait_s(b"a", 2) > 0
    now[0] = 10_000.0
    assert [rates.wait_s(b"a", 2) > 0 for _ in range(3)] == [False, False, True]


def test_the_command(tmp_path: Path) -> None:
    file = ("--tokens-file", tmp_path / "tokens.toml")
    assert in_process("tokens", *file).err.startswith(f"{file[1]} has no tokens")
    made = in_process("tokens", "add", "laptop", "--user-id", "ada", "--role", "read", *file)
    assert made.code == 0
    listed = in_process("tokens", "--json", *file).data
    assert (listed[0]["name"], listed[0]["role"], listed[0]["scopes"]) == (
        "laptop",
        "read",
        ["user_id=ada"],
    )
    rotated = in_process("tokens", "rotate", "laptop", "--json", *file).data
    assert rotated["token"] != made.out.strip()
    assert "laptop" in in_process("tokens", *file).out
    assert in_process("tokens", "revoke", "nobody", *file).code != 0
    assert in_process("tokens", "add", *file).code == 2
    for more in ((), ("--user-id", "ada", "--role", "administer")):
        refused = in_process("tokens", "add", "other", *more, *file)
        assert (refused.code, "--role administer" in refused.err) == (2, True)
    assert "tenant" not in in_process("tokens", *file).out
    in_process("tokens", "add", "theirs", "--user-id", "x", "--tenant", "acme", *file)
    assert "acme" in in_process("tokens", *file).out


def test_a_name_that_two_tokens_have_is_not_revoked_by_half(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    for name in ("one", "two"):
        add_token(path, name, bounds={"user_id": ["ada"]}, role="read")
    text = Path(path).read_text()
    Path(path).write_text(text.replace('"two"', '"one"'))
    for change in (revoke_token, rotate_token):
        with pytest.raises(ConflictError, match="several tokens 'one'"):
            change(path, "one")


def test_a_hash_that_is_not_found_is_not_taken_for_rotated(tmp_path: Path) -> None:
    path = str(tmp_path / "tokens.toml")
    add_token(path, "one", bounds={"user_id": ["ada"]}, role="read")
    Path(path).write_text(Path(path).read_text().replace("sha256", '"sha256"'))
    with pytest.raises(ConflictError, match="write the hash of 'one'"):
        rotate_token(path, "one")
