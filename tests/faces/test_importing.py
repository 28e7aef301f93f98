"""import --from: each format is read, each item is written once, and MIF goes both ways."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worlddb.errors import FormatError
from worlddb.faces.cli.commands.backup import KINDS
from worlddb.faces.interchange import READERS, ImportedItem, import_items, mif_document
from worlddb.memory.memory import Memory

from .command import in_process

CHATGPT = [
    {
        "conversation_id": "c1",
        "title": "Travel",
        "current_node": "d",
        "mapping": {
            "a": {"message": None, "parent": None},
            "b": {
                "parent": "a",
                "message": {
                    "id": "m1",
                    "author": {"role": "user"},
                    "create_time": 1_700_000_000.5,
                    "content": {"content_type": "text", "parts": ["I moved to Oslo.", {"x": 1}]},
                },
            },
            "c": {
                "parent": "b",
                "message": {
                    "id": "m2",
                    "author": {"role": "assistant"},
                    "content": {"parts": ["An answer that was thrown away."]},
                },
            },
            "d": {
                "parent": "b",
                "message": {
                    "id": "m3",
                    "author": {"role": "assistant"},
                    "content": {"parts": ["Welcome to Oslo!"]},
                },
            },
        },
    }
]
CLAUDE = [
    {
        "uuid": "c2",
        "name": "Work",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "old",
                "content": [{"type": "text", "text": "Ada leads the team."}],
                "created_at": "2026-03-01T09:30:00Z",
            },
            {"uuid": "m2", "sender": "assistant", "text": "Noted.", "content": []},
            {"uuid": "m3", "sender": "human", "text": " "},
        ],
    }
]
MEM0 = {
    "results": [
        {
            "id": "1",
            "memory": "Likes green tea",
            "user_id": "ada",
            "created_at": "2025-01-02T03:04:05-07:00",
            "metadata": {"topic": "drinks"},
            "categories": ["food"],
            "expiration_date": "2999-12-30",
        },
        {"id": "2", "memory": None},
    ]
}
MCP_MEMORY = [
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]},
    {"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"},
]
NOTE = """---
title: Coffee
tags: [drinks]
created: 2025-05-01
---
# Coffee
A drink that
keeps us awake.

- [method] Pour over takes four minutes #brewing (at home)
- [ ] buy beans
- pairs with [[Chocolate]]
"""
GRAPHITI = {
    "nodes": [
        {"uuid": "n1", "name": "Ada", "summary": "A manager."},
        {"uuid": "n2", "name": "Oslo"},
    ],
    "edges": [
        {
            "uuid": "e1",
            "fact": "Ada lives in Oslo.",
            "name": "LIVES_IN",
            "source_node_uuid": "n1",
            "target_node_uuid": "n2",
            "valid_at": "2020-01-01T00:00:00Z",
            "invalid_at": "2024-01-01T00:00:00Z",
        }
    ],
    "episodes": [{"uuid": "p1", "content": "Ada moved to Rome.", "valid_at": "2024-01-01"}],
}
MIF = {
    "mif_version": "2.0",
    "export_meta": {"user_id": "bob"},
    "memories": [
        {"id": "i1", "content": "Uses Vim", "created_at": "2026-01-01T00:00:00Z", "tags": ["dev"]}
    ],
    "knowledge_graph": {
        "entities": [{"id": "1", "name": "Bob"}, {"id": "2", "name": "Vim"}],
        "relationships": [
            {
                "id": "r",
                "source_entity_id": "1",
                "target_entity_id": "2",
                "relation_type": "prefers",
            }
        ],
    },
}


def lines(*entries: Any) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def claude_code() -> str:
    message = {"role": "user", "content": "Deploy with sk-" + "Ab1" * 12}
    return lines({"type": "user", "uuid": "u1", "message": message})


def codex() -> str:
    return lines({"type": "event_msg", "payload": {"type": "user_message", "message": "Use Go."}})


SOURCES: dict[str, tuple[str, Callable[[], str], list[str]]] = {
    "claude-code": ("s.jsonl", claude_code, ["Deploy with [secret: api key]"]),
    "codex": ("s.jsonl", codex, ["Use Go."]),
    "chatgpt": (
        "conversations.json",
        lambda: json.dumps(CHATGPT),
        ["I moved to Oslo.", "Welcome to Oslo!"],
    ),
    "claude": (
        "conversations.json",
        lambda: json.dumps(CLAUDE),
        ["Ada leads the team.", "Noted."],
    ),
    "mem0": ("m.json", lambda: json.dumps(MEM0), ["Likes green tea"]),
    "mcp-memory": (
        "memory.json",
        lambda: lines(*MCP_MEMORY),
        ["Ada: likes tea", "Ada works at Acme."],
    ),
    "basic-memory": (
        "notes/coffee.md",
        lambda: NOTE,
        [
            "Coffee: A drink that keeps us awake.",
            "Coffee: Pour over takes four minutes (at home)",
            "Coffee pairs with Chocolate.",
        ],
    ),
    "graphiti": (
        "g.json",
        lambda: json.dumps(GRAPHITI),
        ["Ada lives in Oslo.", "Ada moved to Rome.", "Ada: A manager."],
    ),
    "mif": ("m.json", lambda: json.dumps(MIF), ["Uses Vim", "Bob prefers Vim."]),
}


def put(folder: Path, kind: str) -> Path:
    name, make, _ = SOURCES[kind]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(make())
    return path


@pytest.mark.parametrize("kind", SOURCES)
def test_each_format_is_read_and_each_item_is_written_once(kind: str, tmp_path: Path) -> None:
    path = put(tmp_path, kind)
    items = list(READERS[kind](str(path)))
    assert [item.text for item in items] == SOURCES[kind][2]
    assert len({item.key for item in items}) == len(items)
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        first = import_items(memory, kind, items, {"user_id": "eve"})
        assert (first.items, first.created, first.refused) == (len(items), len(items), 0)
        again = import_items(memory, kind, READERS[kind](str(path)), {"user_id": "eve"})
        assert (again.created, again.known) == (0, len(items))
        held = memory.list(user_id="eve", include_retired=True, types=["Memory", "Turn"])
        assert {one.text for one in held} >= set(SOURCES[kind][2])


def test_all_formats_that_the_command_offers_have_a_reader_and_a_test() -> None:
    assert tuple(READERS) == KINDS
    assert set(SOURCES) == set(KINDS)


def test_times_scopes_and_ends_are_those_of_the_source(tmp_path: Path) -> None:
    def one(kind: str, number: int = 0) -> ImportedItem:
        return list(READERS[kind](str(put(tmp_path / kind, kind))))[number]

    assert one("mem0").scope == {"user_id": "ada"}
    assert one("mem0").at == "2025-01-02T03:04:05-07:00"
    assert one("mem0").metadata == {"topic": "drinks", "tags": ["food"]}
    assert one("mem0").until == "2999-12-31"  # mem0 shows it until the end of the day.
    assert one("chatgpt").at == "2023-11-14T22:13:20.500000+00:00"
    assert one("chatgpt").scope == {"run_id": "c1"}
    assert one("basic-memory").at == "2025-05-01T00:00:00+00:00"
    assert one("graphiti").until == "2024-01-01T00:00:00+00:00"
    assert one("graphiti").names == ("Ada", "Oslo")
    assert one("mif").scope == {"user_id": "bob"}
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        counts = import_items(memory, "graphiti", [one("graphiti")], {})
        assert counts.ended == 1
        assert memory.list(user_id="default").memories == ()
        then = memory.list(user_id="default", as_of="2022-01-01T00:00:00Z")
        assert [held.text for held in then] == ["Ada lives in Oslo."]


def test_what_the_store_has_ended_by_itself_needs_no_end_from_the_source(tmp_path: Path) -> None:
    later = ImportedItem("1", "I live in Rome.", at="2025-01-01")
    earlier = ImportedItem("2", "I live in Oslo.", at="2020-01-01", until="2999-01-01")
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        counts = import_items(memory, "mem0", [later, earlier], {}, on_refused=pytest.fail)
        assert (counts.created, counts.ended) == (2, 0)


def test_a_session_has_the_id_that_the_hooks_of_its_client_tell(tmp_path: Path) -> None:
    told = "01a1f18e-64af-78f2-8366-e18c0fd4c42e"
    for kind, stem in (("codex", f"rollout-2026-11-19T02-06-43-{told}"), ("claude-code", told)):
        (tmp_path / f"{stem}.jsonl").write_text(SOURCES[kind][1]())
        [item] = READERS[kind](str(tmp_path / f"{stem}.jsonl"))
        assert item.scope == {"run_id": told}


def test_an_item_without_a_user_is_the_users_own_and_a_plain_recall_finds_it(
    tmp_path: Path,
) -> None:
    path, store = put(tmp_path, "claude"), tmp_path / "m.db"
    assert in_process("import", "--from", "claude", path, "--db", store).code == 0
    told = in_process("recall", "Who leads the team?", "--db", store).out
    assert "Ada leads the team." in told
    env = {"WORLDDB_SCOPE": "eve"}
    assert in_process("import", "--from", "claude", path, "--db", store, env=env).code == 0
    with Memory(store, embedder="none") as memory:
        assert len(memory.list(user_id="eve", run_id="c2")) == 2
        of_agent = ImportedItem("k", "Knows Go.", scope={"agent_id": "coder"})
        import_items(memory, "mem0", [of_agent], {})
        assert memory.list(user_id="default", agent_id="coder").memories == ()


def test_a_zip_file_and_a_folder_are_opened_and_nonsense_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "folder", "chatgpt")
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as file:
        file.write(path, "inner/conversations.json")
    plain = list(READERS["chatgpt"](str(path)))
    assert list(READERS["chatgpt"](str(packed))) == plain
    assert list(READERS["chatgpt"](str(path.parent))) == plain
    bad = tmp_path / "bad.json"
    bad.write_text("{not JSON")
    for kind in ("chatgpt", "claude", "mem0", "mcp-memory", "graphiti", "mif"):
        with pytest.raises(FormatError, match="not JSON"):
            list(READERS[kind](str(bad)))
    for data in (b"[" * 100_000 + b"]" * 100_000, b"\xff["):
        bad.write_bytes(data)
        for kind in ("chatgpt", "claude", "mem0", "mcp-memory", "graphiti", "mif"):
            with pytest.raises(FormatError):
                list(READERS[kind](str(bad)))
    note = tmp_path / "note.md"
    note.write_bytes(b"\xff[")
    with pytest.raises(FormatError, match="not UTF-8"):
        list(READERS["basic-memory"](str(note)))
    bad.write_text('[1, "x", null]')
    assert list(READERS["chatgpt"](str(bad))) == []
    with pytest.raises(FormatError):
        list(READERS["mif"](str(bad)))


def test_mif_goes_out_and_in_again_with_times_ends_and_scopes(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", embedder="none", recluster="off") as memory:
        first = memory.write(
            "Lives in Oslo.",
            user_id="ada",
            app_id="shop",
            at="2020-01-01T00:00:00Z",
            metadata={"tags": ["home"], "n": 1},
        )
        memory.retire(first.id, at="2024-01-01T00:00:00Z")
        memory.write("Likes tea.", user_id="ada")
        memory.write("I live in Rome.", user_id="ada", at="2025-01-01")
        memory.write("I live in Bergen.", user_id="ada", at="2026-01-01")
        chat = [{"role": "user", "name": "Bo", "content": "Plums?"}]
        chat += [{"role": role, "content": f"By {role}."} for role in ("assistant", "system")]
        memory.write(messages=chat, user_id="ada", at="2026-02-01")
        document = mif_document(memory, {"user_id": "ada"})
    assert document["mif_version"] == "2.0"
    for held in document["memories"]:
        assert {"id", "content", "created_at"} <= set(held)
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    with Memory(tmp_path / "b.db", embedder="none", recluster="off") as memory:
        refused: list[str] = []
        import_items(memory, "mif", READERS["mif"](str(path)), {}, on_refused=refused.append)
        assert refused == []
        again = mif_document(memory, {"user_id": "ada"})
        live = sorted((held.type, held.text) for held in memory.list(user_id="ada"))
        assert live == [
            ("Memory", "I live in Bergen."),
            ("Memory", "Likes tea."),
            ("Session", "Bo: Plums?\nassistant: By assistant.\napp: By system."),
        ]
    facts = [
        {
            (
                held["content"],
                held["created_at"],
                str(held.get("tags")),
                str(held.get("metadata")),
                held["vendor_extensions"]["worlddb"].get("valid_to"),
                str(held["vendor_extensions"]["worlddb"].get("messages")),
                str(held["vendor_extensions"]["worlddb"]["scopes"]),
            )
            for held in made["memories"]
        }
        for made in (document, again)
    ]
    assert facts[0] == facts[1]


def test_the_command_counts_first_and_writes_then(tmp_path: Path) -> None:
    path, store = put(tmp_path, "mem0"), tmp_path / "m.db"
    shown = in_process("import", "--from", "mem0", path, "--dry-run", "--db", store)
    assert shown.out.startswith("1 items in ")
    assert not store.exists()
    done = in_process("import", "--from", "mem0", path, "--db", store, "--json")
    assert done.data == {"items": 1, "created": 1, "known": 0, "ended": 1, "refused": 0}
    out = tmp_path / "out.json"
    told = in_process("export", "--to", "mif", out, "--db", store, "--user-id", "ada")
    assert told.out.startswith("exported 1 memories")
    assert json.loads(out.read_text())["memories"][0]["tags"] == ["food"]
    assert in_process("import", path, "--dry-run", "--db", store).code == 2
    assert in_process("import", "--from", "mem0", tmp_path / "no", "--db", store).code != 0


@pytest.mark.parametrize(
    ("kind", "name", "text", "told"),
    [
        ("claude-code", "x.json", '{"results": []}', "has nothing that --from claude-code reads"),
        ("graphiti", "x.json", '{"results": []}', "is it of another KIND?"),
        ("basic-memory", "x.jsonl", '{"type": "entity"}', "neither a note (.md) nor a folder"),
    ],
)
def test_a_file_of_another_kind_is_told(
    tmp_path: Path, kind: str, name: str, text: str, told: str
) -> None:
    path, store = tmp_path / name, tmp_path / "m.db"
    path.write_text(text, encoding="utf-8")
    for more in ((), ("--dry-run",)):
        done = in_process("--db", store, "import", "--from", kind, path, *more)
        assert (done.code, told in done.err) == (6, True)
    assert not store.exists()


def test_a_zip_file_where_json_is_wanted_is_told(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        packed.writestr("mem0.json", "[]")
    done = in_process("--db", tmp_path / "m.db", "import", "--from", "mem0", tmp_path / "x.zip")
    assert (done.code, "give the JSON file in it" in done.err) == (6, True)
    inner = in_process("--db", tmp_path / "m.db", "import", "--from", "mem0", tmp_path)
    assert (inner.code, "is a folder; give the file in it" in inner.err) == (6, True)


def test_every_import_masks_secrets_also_in_what_it_says(tmp_path: Path) -> None:
    key = "sk-" + "Ab1" * 12
    item = ImportedItem(
        "k1",
        f"Deploy with {key}",
        names=(f"Key {key}",),
        metadata={"token": key, "deep": [{"password": "Sunshine2024!"}]},
    )
    told: list[str] = []
    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        import_items(memory, "mem0", [item], {})
        late = item._replace(key="k2", at="soon")
        assert import_items(memory, "mem0", [late], {}, on_refused=told.append).refused == 1
        (held,) = memory.list()
        assert held.text == "Deploy with [secret: api key]"
    assert "[secret: api key]" in told[0]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (key, "Sunshine2024!"):
        assert secret not in told[0]
        assert secret.encode() not in stored


def zipped(path: Path, **entries: Any) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in entries.items():
            packed.writestr(name.replace("__", "/") + ".json", json.dumps(data))


def message(role: str, *parts: Any, parent: str, **more: Any) -> dict[str, Any]:
    told = {"author": {"role": role}, "content": {"parts": list(parts)}} | more
    return {"parent": parent, "message": told | {"id": str(parts)[:20]}}


def test_a_large_chatgpt_export_in_numbered_files_keeps_what_was_said_and_no_more(
    tmp_path: Path,
) -> None:
    spoken = {"content_type": "audio_transcription", "text": "I like brie."}
    mapping = {
        "a": message("user", spoken, {"content_type": "audio"}, parent=""),
        "b": message("assistant", '{"prompt": "a cheese"}', parent="a", recipient="dalle"),
        "c": message("assistant", "Ada likes brie.", parent="b", recipient="bio"),
        "d": message(
            "user", "hidden", parent="c", metadata={"is_visually_hidden_from_conversation": True}
        ),
        "e": message("assistant", "Brie \ue200cite\ue202turn0\ue201it is.", parent="d"),
    }
    chat = {"conversation_id": "c9", "current_node": "e", "mapping": mapping}
    zipped(
        tmp_path / "export.zip",
        **{
            "conversations-000": CHATGPT,
            "conversations-001": [chat, chat | {"id": "x", "is_do_not_remember": True}],
            "user": {"id": "u"},
        },
    )
    for path in (tmp_path, tmp_path / "export.zip"):
        said = [one.text for one in READERS["chatgpt"](str(path))]
        assert said[:2] == SOURCES["chatgpt"][2]
        assert said[2:] == ["I like brie.", "Ada likes brie.", "Brie it is."]


def test_a_claude_export_in_parts_has_its_memories_and_no_answer_that_was_replaced(
    tmp_path: Path,
) -> None:
    said = (("m1", "human", "", 1), ("m2", "assistant", "m1", 3), ("m3", "assistant", "m1", 2))
    chat = [
        {"uuid": key, "sender": who, "text": key, "parent_message_uuid": parent}
        | {"created_at": f"2026-03-01T09:0{minute}:00Z"}
        for key, who, parent, minute in said
    ]
    kept = "**Work context**\n\nNora bakes\nbread.\n\n# Home\n\nNora has a dog."
    memories = {"conversations_memory": kept, "project_memories": {"p1": "It is in Rust."}}
    zipped(tmp_path / "conversations-000.zip", conversations=[{"uuid": "c", "chat_messages": chat}])
    zipped(tmp_path / "memories-000.zip", memories__acct=memories, users=[{"uuid": "u"}])
    found = list(READERS["claude"](str(tmp_path)))
    assert [(one.text, one.role) for one in found[:2]] == [("m1", "user"), ("m2", "assistant")]
    assert [(one.text, dict(one.metadata)) for one in found[2:]] == [
        ("Nora bakes bread.", {"title": "Work context"}),
        ("Nora has a dog.", {"title": "Home"}),
        ("It is in Rust.", {"project": "p1"}),
    ]


@pytest.mark.parametrize("tags", ["[drinks, 'hot']", "drinks, hot", "\n  - drinks\n  - hot"])
def test_the_tags_of_a_note_are_those_of_its_memories(tmp_path: Path, tags: str) -> None:
    path = tmp_path / "coffee.md"
    path.write_text(NOTE.replace("[drinks]", tags))
    found = {one.text[:10]: one.metadata["tags"] for one in READERS["basic-memory"](str(path))}
    assert found["Coffee: A "] == ["drinks", "hot"]
    assert found["Coffee: Po"] == ["drinks", "hot", "brewing"]
