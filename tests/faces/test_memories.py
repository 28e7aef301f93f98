"""write, list, amend, retire and scopes; and whose memories recall and read look at."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

import worlddb as engine
from worlddb.faces.call_models import result_class, result_model
from worlddb.faces.calls import call_named

from .command import COMMAND, DEADLINE_S, Result, environment, in_process, on_terminal, worlddb

HASH = ("--embedder", "hash")


class Store:
    """A store of a test's own, and the command on it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, *arguments: object) -> Result:
        return in_process(*arguments, "--db", self.path)

    def data(self, *arguments: object) -> Any:
        done = self(*arguments, "--json")
        assert done.code == 0, done.err
        return done.data

    def texts(self, *arguments: object) -> list[str]:
        return [memory["text"] for memory in self.data("list", *arguments)["memories"]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "memory.db")


def test_a_newcomer_writes_recalls_and_lists_without_naming_anything(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    done = worlddb("write", "My manager Sarah Chen likes green tea", env=env)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("remembered ")
    assert "scopes      user:default" in lines
    assert any(line.startswith("entities") and "Sarah Chen (new)" in line for line in lines)
    found = worlddb("recall", "What does Sarah like?", env=env)
    assert "green tea" in found.out
    assert "green tea" in worlddb("list", env=env).out


def test_write_says_all_that_it_did(store: Store) -> None:
    told = store.data(
        *("write", "Tom Baker sails", "--user-id", "ada", "--agent-id", "helper"),
        *("--source", "chat 1", "--source", "mail", "--metadata", '{"n": 1}'),
        *("--at", "2026-01-02T03:04:05Z"),
    )
    assert told["created"] is True
    assert told["commit"]["seq"] == 1
    assert told["scopes"] == [
        {"kind": "user", "value": "ada"},
        {"kind": "agent", "value": "helper"},
    ]
    with engine.Memory(store.path) as memory:
        kept = memory.read(told["id"])
        assert kept.provenance == ("chat 1", "mail")
        assert kept.metadata == {"n": 1}
        assert kept.valid_from.isoformat() == "2026-01-02T03:04:05+00:00"
        assert str(memory.db.root_state) == told["root_state"]
    again = store.data("write", "Tom Baker sails", "--user-id", "ada")
    assert (again["created"], again["id"]) == (False, told["id"])
    assert store("write", "Tom Baker sails", "--user-id", "ada").out.startswith("known already: ")


def test_write_takes_stdin_and_chats(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    piped = in_process("write", "-", "--json", "--db", path, stdin="naïve café ☕\n".encode())
    assert piped.data["created"] is True
    chat = [{"role": "user", "content": "I moved to Oslo"}, {"role": "assistant", "content": "Ok"}]
    lines = "\n".join(map(json.dumps, chat)).encode()
    forms = [json.dumps(chat).encode(), lines, json.dumps({"messages": chat}).encode()]
    ids = set()
    for form in forms:
        done = in_process("write", "--messages", "-", "--json", "--db", path, stdin=form)
        ids.add(done.data["id"])
    assert len(ids) == 1
    listed = in_process("list", "--json", "--db", path).data["memories"]
    assert [memory["text"].strip() for memory in listed] == [
        "user: I moved to Oslo\nassistant: Ok",
        "naïve café ☕",
    ]
    shown = in_process("read", ids.pop(), "--db", path).out
    assert shown.endswith("user: I moved to Oslo\nassistant: Ok\n")


def test_write_takes_a_memory_from_each_line_and_may_be_repeated(
    store: Store, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_bytes("\ufeffone fact\r\n\n  two facts  \none fact\nthird".encode())
    told = store.data("write", "--lines", notes, "--user-id", "ada", "--source", "notes")
    assert told == {"lines": 4, "created": 3, "known": 1, "commit": 3}
    assert store("write", "--lines", notes, "--user-id", "ada").out == (
        "4 lines: 0 remembered, 4 known already\n"
    )
    assert store.texts("--user-id", "ada") == ["third", "two facts", "one fact"]
    notes.write_bytes(b"fourth\n\xff\nfifth\n")
    broken = store("write", "--lines", notes, "--user-id", "ada")
    assert (broken.code, broken.out) == (2, "")
    assert "line 2: is not UTF-8 text; the lines before it are written" in broken.err
    assert store.texts("--user-id", "ada")[0] == "fourth"


def test_lines_draw_a_progress_line_on_a_terminal(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("".join(f"fact {number}\n" for number in range(20)))
    code, screen = on_terminal("write", "--lines", notes, "--db", tmp_path / "m.db")
    assert code == 0
    assert screen.index("\r\x1b[K") < screen.index("20 lines: 20 remembered")


def test_the_same_key_writes_once_and_another_text_with_it_is_a_conflict(store: Store) -> None:
    first = store.data("write", "keyed", "--idempotency-key", "k")
    assert store.data("write", "keyed", "--idempotency-key", "k")["id"] == first["id"]
    done = store("write", "something else", "--idempotency-key", "k")
    assert done.code == 4


def test_the_extractor_is_chosen_by_flag_and_by_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entities(*arguments: object) -> list[str]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        done = in_process("write", "My boss is Eve Ito", "--json", "--db", path, *arguments)
        return [one["name"] for one in done.data["entities"]]

    assert "Eve Ito" in entities()
    assert entities("--extractor", "verbatim") == []
    monkeypatch.setenv("WORLDDB_EXTRACTOR", "verbatim")
    assert entities() == []
    assert "Eve Ito" in entities("--extractor", "rules")
    missing = in_process("write", "x", "--extractor", "llm", "--db", tmp_path / "x.db")
    assert missing.code == 2
    assert "no language model is configured" in missing.err


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["write"], 2, "give one of TEXT ('-' reads stdin), --messages FILE"),
        (["write", "x", "--lines", "y"], 2, "give one of TEXT"),
        (["write", ""], 2, "no text to remember"),
        (["write", "x", "--metadata", "[1]"], 2, "--metadata: give a JSON object"),
        (["write", "x", "--metadata", "{"], 2, "--metadata: is not JSON"),
        (["list", "--where", "topic=tea"], 2, '--where: is not JSON, such as {"topic": "tea"}:'),
        (["write", "--messages", "-"], 2, "stdin: is empty"),
        (["write", "x", "--at", "yesterday"], 2, "at"),
        (["write", "x", "--user-id", " "], 2, "user_id"),
        (["write", "x", "--user-id", "a\x1bb"], 2, "control characters"),
        (["write", "x", "--extractor", "magic"], 2, "--extractor: 'magic' is not one of rules"),
        (["write", "--messages", "/no/such"], 8, "no such file"),
        (["write", "--lines", "x", "--idempotency-key", "k"], 2, "is for one memory"),
        (["list", "--limit", "0"], 2, "limit"),
        (["list", "--cursor", "zz"], 2, "next_cursor"),
        (["amend", "ffff", "x"], 3, "ffff"),
        (["amend", "ffff"], 2, "TEXT"),
        (["retire"], 2, "give the IDs of memories, or --all"),
        (["retire", "ffff", "--all"], 2, "give the IDs of memories, or --all"),
        (["retire", "--all"], 2, "name the scope"),
        (["retire", "--all", "--yes"], 2, "name the scope"),
        (["retire", "ffff"], 3, "ffff"),
        (["scopes", "purge"], 2, "give the SCOPE"),
        (["scopes", "purge", "ada", "--yes"], 2, "is not a scope"),
        (["scopes", "purge", "user:nobody", "--yes"], 3, "there is no scope user:nobody"),
        (["scopes", "--kind", "planet"], 2, "invalid choice"),
        (["recal", "x"], 2, "there is no command 'recal'; the nearest is 'recall'; see"),
        (["zzzzz"], 2, "there is no command 'zzzzz'; see"),
        (["split"], 2, "it is an action of another: 'worlddb proposals split'; see"),
        (
            ["list", "--user", "ada"],
            2,
            "unrecognized arguments: --user; the nearest is '--user-id'; see 'worlddb list --help'",
        ),
        (["scopes", "list", "user:ada"], 2, "takes no SCOPE"),
        (["recall", "x", "--scope", "ffff", "--user-id", "a"], 2, "only one of"),
        (["recall", "x", "--everyone", "--agent-id", "a"], 2, "only one of"),
        (["recall", "x", "--as-of", "yesterday"], 2, "--as-of"),
        (["list", "--known-at", "2026-01-01T10:00"], 2, "--known-at"),
    ],
)
def test_a_wrong_command_is_one_line_and_a_code(
    store: Store, arguments: list[str], code: int, complaint: str
) -> None:
    store.data("write", "something")
    done = store(*arguments)
    assert (done.code, done.out) == (code, ""), done.err
    assert complaint in done.err
    assert done.err.startswith("worlddb: ")
    assert done.err.count("\n") == 1


def test_only_write_makes_a_store(tmp_path: Path) -> None:
    commands = [["list"], ["scopes"], ["amend", "ffff", "x"], ["retire", "ffff"]]
    commands += [["retire", "--all", "--user-id", "a", "--yes"], ["recall", "x"], ["read", "ffff"]]
    for arguments in commands:
        done = in_process(*arguments, "--db", tmp_path / "typo.db")
        assert (done.code, done.out) == (8, "")
    assert list(tmp_path.iterdir()) == []
    assert in_process("write", "x", "--db", tmp_path / "new.db").code == 0


def test_list_shows_a_page_at_a_time_and_where_the_next_begins(store: Store) -> None:
    for number in range(5):
        store.data("write", f"fact {number}")
    done = store("list", "--limit", 2)
    assert [line.split()[-1] for line in done.rows] == ["4", "3"]
    cursor = store.data("list", "--limit", 2)["next_cursor"]
    assert done.err == f"there are more: --cursor {cursor}\n"
    assert store.texts("--limit", 2, "--cursor", cursor) == ["fact 2", "fact 1"]
    assert store.texts() == [f"fact {number}" for number in (4, 3, 2, 1, 0)]


def test_the_clocks_have_the_names_of_the_other_faces_and_their_old_ones(store: Store) -> None:
    for year in (2024, 2025):
        store.data("write", f"It is {year}", "--at", f"{year}-01-01T00:00:00Z")
    then = "2024-06-01T00:00:00Z"
    assert store.texts("--as-of", then) == store.texts("--valid", then) == ["It is 2024"]
    assert store.texts("--known-at", then) == store.texts("--known", then) == []
    assert store.texts("--as-of", then, "--include-retired") == ["It is 2024"]
    for command in ("recall", "list", "read", "children"):
        told = in_process(command, "--help").out
        assert "--as-of TIME" in told
        assert "--known-at TIME" in told
        assert "--valid" not in told
        assert "--known " not in told


def test_an_empty_list_says_whose_memories_there_are(store: Store) -> None:
    store.data("write", "x", "--user-id", "ada", "--run-id", "a b")
    done = store("list")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        "nothing found for user:default; there are others: --user-id ada, --run-id 'a b'\n"
    )
    assert store("list", "--user-id", "bob").err == "nothing found\n"


def test_scopes_of_every_kind_that_is_named_have_to_hold_a_memory(store: Store) -> None:
    store.data("write", "both", "--user-id", "ada", "--agent-id", "helper")
    store.data("write", "ada alone", "--user-id", "ada")
    store.data("write", "bob", "--user-id", "bob")
    assert store.texts("--user-id", "ada") == ["ada alone", "both"]
    assert store.texts("--user-id", "ada", "--agent-id", "helper") == ["both"]
    assert store.texts("--agent-id", "helper") == ["both"]
    assert store.texts("--user-id", "ada", "--user-id", "bob") == ["bob", "ada alone", "both"]


def test_recall_means_the_user_that_write_and_list_mean_unless_somebody_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.db"
    for user, drink in (("ada", "green tea"), ("bob", "black tea"), ("default", "iced tea")):
        assert in_process("write", f"drinks {drink}", "--user-id", user, "--db", path).code == 0

    def drinks(*arguments: object, **env: str) -> set[str]:
        with monkeypatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            done = in_process("recall", "tea", "--json", *HASH, *arguments, "--db", path)
        return {hit["node"]["content"].split()[1] for hit in done.data["hits"]}

    assert drinks() == {"iced"}
    assert drinks("--everyone") == {"green", "black", "iced"}
    assert drinks("--everyone", WORLDDB_SCOPE="bob") == {"green", "black", "iced"}
    assert drinks("--user-id", "ada") == {"green"}
    assert drinks("--user-id", "ada", "--user-id", "bob") == {"green", "black"}
    assert drinks(WORLDDB_SCOPE="bob") == {"black"}
    assert drinks("--user-id", "ada", WORLDDB_SCOPE="bob") == {"green"}
    assert drinks("--user-id", "nobody") == set()
    assert drinks("--type", "Memory", "--user-id", "ada") == {"green"}
    assert drinks("--type", "Event", "--user-id", "ada") == set()
    config = tmp_path / "config.toml"
    config.write_text("user_id = 'ada'")
    assert drinks(WORLDDB_CONFIG=str(config)) == {"green"}


def test_read_finds_only_what_is_inside_the_named_scope(store: Store) -> None:
    ident = store.data("write", "secret", "--user-id", "ada")["id"]
    assert store.data("read", ident[:6], "--user-id", "ada")["id"] == ident
    assert store.data("read", ident)["scopes"] == [{"kind": "user", "value": "ada"}]
    hidden = store("read", ident, "--user-id", "bob")
    assert (hidden.code, hidden.out) == (3, "")


def test_amending_keeps_the_old_memory_and_says_so(store: Store) -> None:
    old = store.data("write", "lives in Rome", "--user-id", "ada", "--metadata", '{"a": 1}')["id"]
    refused = store("amend", old, "lives in Oslo", "--user-id", "bob")
    assert refused.code == 3
    done = store("amend", old[:8], "lives in Oslo", "--user-id", "ada")
    assert f"superseded  {old[:12]}" in done.out.splitlines()
    assert store.texts("--user-id", "ada") == ["lives in Oslo"]
    assert store.texts("--user-id", "ada", "--include-retired") == [
        "lives in Oslo",
        "lives in Rome",
    ]
    new = store.data("list", "--user-id", "ada")["memories"][0]
    assert new["metadata"] == {"a": 1}
    shown = store("read", old).out
    assert f"superseded_by  {new['id']}" in shown.splitlines()
    assert store("amend", old, "again").code == 4
    table = store("list", "--user-id", "ada", "--include-retired").out.splitlines()
    assert table[0].split() == ["id", "valid_from", "valid_to", "scopes", "text"]


def test_amending_to_no_text_is_refused(store: Store) -> None:
    old = store("write", "lives in Rome", "--json").data["id"]
    for blank in ("", "  "):
        done = store("amend", old, blank)
        assert (done.code, done.out) == (2, "")
        assert "there is no text to remember" in done.err
    assert store("read", old, "--json").data["valid_to"] is None


def test_amending_reads_stdin(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    ident = in_process("write", "old", "--json", "--db", path).data["id"]
    done = in_process("amend", ident, "-", "--json", "--db", path, stdin=b"new")
    assert done.data["superseded"] == [ident]


def test_retiring_ends_all_the_named_memories_or_none(store: Store) -> None:
    ids = [store.data("write", f"fact {number}")["id"] for number in range(3)]
    assert store("retire", ids[0], ids[1], "ffff").code == 3
    assert len(store.texts()) == 3
    told = store.data("retire", ids[0][:8], ids[1], ids[1])
    assert told["ids"] == ids[:2]
    assert store.texts() == ["fact 2"]
    assert store("retire", ids[0]).out.startswith("had ended already")
    assert store("retire", ids[2], "--user-id", "bob").code == 3


def test_retiring_all_needs_a_scope_and_a_yes(store: Store) -> None:
    for text, user in (("one", "ada"), ("two", "ada"), ("three", "bob")):
        store.data("write", text, "--user-id", user)
    refused = in_process("retire", "--all", "--user-id", "ada", "--db", store.path)
    assert (refused.code, refused.out) == (2, "")
    assert (
        "retire all memories of user:ada (2): there is no terminal to ask at; give --yes"
        in refused.err
    )
    assert len(store.texts("--user-id", "ada")) == 2
    told = store.data("retire", "--all", "--user-id", "ada", "--yes")
    assert len(told["ids"]) == 2
    assert store.texts("--user-id", "ada") == []
    assert store.texts("--user-id", "bob") == ["three"]


def answering(path: Path, answer: bytes, *arguments: object) -> tuple[int, str]:
    """Run a command at a terminal where somebody types `answer` at the question."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--db", str(path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment({"NO_COLOR": "1"}),
    )
    os.close(theirs)
    screen = b""
    while b"[y/N] " not in screen:
        screen += os.read(ours, 65_536)
    os.write(ours, answer)
    try:
        while chunk := os.read(ours, 65_536):
            screen += chunk
    except OSError:
        pass
    os.close(ours)
    return process.wait(DEADLINE_S), screen.decode()


def test_at_a_terminal_somebody_is_asked_and_only_yes_is_yes(store: Store) -> None:
    store.data("write", "one", "--user-id", "ada")
    for answer in (b"\n", b"no\n", b"\x04"):
        code, screen = answering(store.path, answer, "scopes", "purge", "user:ada")
        assert code == 1
        assert "nothing was changed" in screen
    assert store.texts("--user-id", "ada") == ["one"]
    code, screen = answering(store.path, b"y\n", "retire", "--all", "--user-id", "ada")
    assert (code, "ended 1 node" in screen) == (0, True)
    code, screen = answering(store.path, b"YES\n", "scopes", "purge", "user:ada")
    assert (code, "and user:ada" in screen) == (0, True)
    assert store.texts("--user-id", "ada") == []


def test_scopes_are_listed_by_kind_and_purged_ones_only_when_asked(store: Store) -> None:
    store.data("write", "x", "--user-id", "ada", "--run-id", "r1")
    store.data("write", "y", "--user-id", "bob")
    rows = [line.split() for line in store("scopes").rows]
    assert [(row[1], row[-1]) for row in rows] == [("user", "ada"), ("run", "r1"), ("user", "bob")]
    assert [one["name"] for one in store.data("scopes", "--kind", "user")["scopes"]] == [
        "user:ada",
        "user:bob",
    ]
    told = store.data("scopes", "purge", "user:ada", "--yes")
    assert told["scopes"] == [{"kind": "user", "value": "ada"}]
    assert [one["value"] for one in store.data("scopes")["scopes"]] == ["r1", "bob"]
    everyone = store.data("scopes", "--include-retired")["scopes"]
    assert [one["value"] for one in everyone if one["retired"]] == ["ada"]
    store.data("write", "again", "--user-id", "ada")
    assert store.texts("--user-id", "ada") == ["again"]
    with engine.open(store.path) as db:
        assert db.check() == []


def test_hostile_memories_cannot_move_the_cursor_or_forge_a_row(store: Store) -> None:
    store.data("write", "\x1b[2J red \u202e reversed\nffffffffffff  forged row")
    done = store("list")
    assert len(done.rows) == 1
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_commands_that_need_no_model_work_with_one_that_is_not_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ident = store.data("write", "x")["id"]
    assert store("recall", "x", *HASH).code == 0
    monkeypatch.setenv("WORLDDB_EMBEDDER", "hash-32")
    monkeypatch.setenv("WORLDDB_EXTRACTOR", "llm")
    for arguments in (["list"], ["scopes"], ["read", ident], ["retire", ident]):
        assert store(*arguments).code == 0
    assert store("recall", "x").code == 4
    assert store("write", "y").code == 2


def test_documents_of_a_folder_are_remembered_and_brought_up_to_date(tmp_path: Path) -> None:
    db, folder = ("--db", tmp_path / "m.db"), tmp_path / "pages"
    (folder / "inner").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "tea.md").write_text("# Tea\n\nGreen tea at 80 degrees.\n", encoding="utf-8")
    (folder / "inner" / "owl.html").write_text("<h1>Owl</h1><p>It sleeps.", encoding="utf-8")
    (folder / "bad.txt").write_bytes(b"\xff")
    (folder / ".git" / "x.md").write_text("hidden", encoding="utf-8")
    (folder / "x.png").write_bytes(b"\x89PNG")
    give = (*db, "write", "--document", folder, "--json")
    done = in_process(*give)
    assert done.data == {"documents": 3, "new": 2, "changed": 0, "unchanged": 0, "refused": 1}
    assert "bad.txt: is not UTF-8" in done.err
    (folder / "tea.md").write_text("# Tea\n\nGreen tea at 75 degrees.\n", encoding="utf-8")
    assert in_process(*give).data["changed"] == 1
    assert in_process(*give).data["unchanged"] == 2
    single = in_process(*db, "write", "--document", folder / "tea.md", "--json")
    assert (single.data["created"], single.data["commit"]) == (False, None)
    assert "75 degrees" in in_process(*db, "recall", "green tea", "--embedder", "none").out
    assert in_process(*db, "write", "text", "--document", folder).code != 0


def test_documents_whose_files_are_gone_are_told_and_retired_on_request(tmp_path: Path) -> None:
    db, folder = ("--db", tmp_path / "m.db"), tmp_path / "pages"
    folder.mkdir()
    tea, owl = folder / "tea.md", folder / "owl.md"
    tea.write_text("# Tea\n\nGreen tea at 80 degrees.\n", encoding="utf-8")
    owl.write_text("# Owl\n\nThe owl sleeps by day.\n", encoding="utf-8")
    give = (*db, "write", "--document", folder, "--json")
    assert in_process(*give, "--dry-run").data["new"] == 2
    assert not (tmp_path / "m.db").exists()
    in_process(*give)
    in_process(*db, "write", "--document", owl, "--user-id", "ada")
    tea.write_text("# Tea\n\nGreen tea at 75 degrees.\n", encoding="utf-8")
    owl.unlink()
    tried = in_process(*give, "--dry-run", "--retire-missing").data
    assert (tried["changed"], tried["missing"], tried["retired"]) == (1, [str(owl)], 0)
    told = in_process(*db, "write", "--document", folder)
    assert "1 with no file any more; --retire-missing retires them" in told.out
    assert in_process(*give, "--dry-run").data["unchanged"] == 1
    assert "sleeps" in in_process(*db, "recall", "owl", "--embedder", "none").out
    assert in_process(*give, "--retire-missing").data["retired"] == 1
    assert "sleeps" not in in_process(*db, "recall", "owl", "--embedder", "none").out
    ada = ("--user-id", "ada", "--embedder", "none")
    assert "sleeps" in in_process(*db, "recall", "owl", *ada).out
    assert "missing" not in in_process(*give).data
    tea.unlink()
    refused = in_process(*give, "--retire-missing")
    assert (refused.code, "has no document at all" in refused.err) == (2, True)
    assert in_process(*db, "write", "x", "--dry-run").code == 2


def test_an_option_may_have_the_name_it_has_in_python(store: Store) -> None:
    done = store.data(
        "write",
        "The shelf is full.",
        "--names",
        "Zoe",
        "--name",
        "Yan",
        "--tags",
        "a",
        "--tag",
        "b",
    )
    assert {one["name"] for one in done["entities"]} >= {"Zoe", "Yan"}
    assert store.data("read", done["id"])["metadata"]["tags"] == ["a", "b"]
    assert "--names" not in store("write", "--help").out
    assert len(store.data("recall", "shelf", "--types", "Memory", *HASH)["hits"]) == 1


def test_a_command_answers_in_json_what_its_call_answers_over_rest(tmp_path: Path) -> None:
    """Scripts can go from one face to the other."""
    db = ("--db", tmp_path / "m.db", "--json")

    def told(call: str, *arguments: object) -> Any:
        data = in_process(*arguments, *db).data
        result_model(result_class(call_named(call))).model_validate_json(json.dumps(data))
        return data

    first = told("write", "write", "I live in Oslo.")["id"]
    second = told("amend", "amend", first, "I live in Rome.")["id"]
    third = told("write", "write", "I own a boat.")["id"]
    for call in ("pin", "unpin"):
        told(call, call, second)
    told("list", "list")
    told("list_scopes", "scopes")
    told("context", "context")
    told("identity", "identity", "user")
    told("conflicts", "conflicts")
    told("edge_types", "ontology")
    edge = told("link", "link", "implies", second, third)["id"]
    told("unlink", "unlink", edge)
    told("query", "query", "text Rome")
    told("retire", "retire", third)
    ends = told("retire_all", "retire", "--all", "--user-id", "default", "--yes")
    told("undo", "undo", ends["commit"]["seq"])
    told("write_file", "files", "write", "/a/b.md", "tea")
    told("edit_file", "files", "edit", "/a/b.md", "tea", "mate")
    told("read_file", "files", "read", "/a/b.md")
    told("list_files", "files", "list", "/a")
    told("glob_files", "files", "glob", "*.md")
    told("grep_files", "files", "grep", "mate")
    told("move_file", "files", "move", "/a/b.md", "/c.md")
    told("delete_file", "files", "delete", "/c.md")
    read = in_process("read", second, *db).data
    with engine.Memory(tmp_path / "m.db", embedder="none") as memory:
        assert read.items() >= memory.read(second).to_dict().items()
