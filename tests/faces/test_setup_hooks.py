"""setup --hooks and setup --remove: our hooks go in and out, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worlddb.faces.clients.client_catalog import CLIENTS, http_entry, stdio_entry
from worlddb.faces.clients.client_file import (
    HOOK_CLIENTS,
    hook_commands,
    hooks_edit,
    hooks_removal,
    remove_toml,
    set_toml,
)
from worlddb.faces.clients.settings_text import append_json, parse_json, remove_json, set_json
from worlddb.faces.diagnosis import examine_hooks

from .command import Result, in_process
from .test_setup import ENTRY, JSON_TEXTS, PLACE, TOML_TEXTS, tables

MINE = """{
  // my own
  "theme": "dark",
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]} // loud
    ]
  },
}
"""
RANDOM = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(variable, raising=False)


def setup(*arguments: object) -> Result:
    return in_process("setup", *arguments)


@pytest.mark.parametrize("name", HOOK_CLIENTS)
def test_hooks_are_written_once_and_taken_out_without_a_trace(name: str, tmp_path: Path) -> None:
    shown = setup(name, "--hooks")
    assert set(json.loads(shown.out)["hooks"]) == set(hook_commands(HOOK_CLIENTS[name], []))
    assert list(tmp_path.iterdir()) == []
    done = setup(name, "--hooks", "--write", "--json").data
    path = Path(done["path"])
    assert path.is_relative_to(tmp_path)
    first = path.read_text()
    assert f" --client {name}" in first
    again = setup(name, "--hooks", "--write")
    assert "already set up with hooks" in again.out
    assert path.read_text() == first
    assert f"worlddb setup {name} --write" in again.err
    setup(name, "--write")
    assert "not tools" not in setup(name, "--hooks", "--write").err
    setup(name, "--remove")
    assert not path.exists()


def test_the_command_that_is_told_has_what_was_given(tmp_path: Path) -> None:
    told = setup("codex", "--hooks", "--project", "--db", "a b.db").err
    assert "'worlddb setup codex --db 'a b.db' --hooks --project --write' puts it there" in told
    told = setup("cursor", "--http", "http://127.0.0.1:1", "--token", "t0psecret").err
    assert "'worlddb setup cursor --http http://127.0.0.1:1 --write --token …'" in told


def test_the_hooks_of_others_stay_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(MINE)
    assert setup("claude-code", "--hooks", "--write").code == 0
    data = parse_json(path.read_text())
    assert data["theme"] == "dark"
    assert data["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    assert len(data["hooks"]["Stop"]) == 2
    shown = setup("claude-code", "--remove", "--dry-run")
    assert "-" in shown.out
    assert "hook Stop --client claude-code" in path.read_text()
    setup("--remove")
    assert path.read_text() == MINE


def test_remove_takes_out_the_entries_of_all_clients_and_says_if_there_is_none(
    tmp_path: Path,
) -> None:
    for name in CLIENTS:
        assert setup(name, "--write").code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == len(CLIENTS)
    done = setup("--remove")
    assert done.out.count("disconnected") == len(CLIENTS)
    assert not [path for path in files if path.exists()]
    assert setup("--remove").out == "nothing of ours is there\n"
    assert setup().code == 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("windsurf", '{"mcpServers":{}}\n'),
        ("cline", '{\n  "mcpServers": {\n  }\n}\n'),
        ("claude-code", '{"mcpServers":{"a":{"type":"http","url":"https://a.example/mcp/"}}}\n'),
        ("codex", '[mcp_servers.docs]\ncommand = "d"\n\n[projects."/x"]\ntrust = true\n'),
        ("goose", "extensions:\n  a: {enabled: true}\nGOOSE_MODEL: m"),
        ("gemini", '{"hooks": {"AfterAgent": []}, "mcpServers": {}}'),
    ],
)
def test_setup_and_remove_leave_every_byte_of_a_person_file(name: str, text: str) -> None:
    path = Path(setup(name, "--json").data["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert setup(name, "--write").code == 0
    if name in HOOK_CLIENTS:
        assert setup(name, "--hooks", "--write").code == 0
    assert path.read_text() != text
    assert setup("--remove").code == 0
    assert path.read_text() == text


def test_what_was_edited_since_is_kept_when_our_entry_goes() -> None:
    path = Path(setup("windsurf", "--json").data["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers":{}}')
    setup("windsurf", "--write")
    edited = parse_json(path.read_text()) | {"theme": "dark"}
    path.write_text(json.dumps(edited))
    setup("--remove")
    assert parse_json(path.read_text()) == {"theme": "dark"}


def test_an_address_is_no_comment() -> None:
    text = '{"mcpServers":{"a":{"url":"https://a.example/mcp/"}}}'
    assert remove_json(set_json(text, PLACE, ENTRY), PLACE) == text


def test_a_toml_table_between_others_leaves_the_blank_line() -> None:
    text = '[mcp_servers.docs]\ncommand = "d"\n\n[projects."/x"]\ntrust = true\n'
    place = ("mcp_servers", "worlddb")
    assert remove_toml(set_toml(text, place, ENTRY), place) == text


def test_hooks_of_a_project_have_no_path_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    done = setup("codex", "--hooks", "--project", "--write", "--json").data
    text = Path(done["path"]).read_text()
    assert '"worlddb hook Stop --client codex"' in text
    assert str(tmp_path) not in text
    # Others may share these settings, so they are named and not taken out along with one's own.
    told = setup("--remove").err
    assert done["path"] in told
    assert "worlddb setup --remove --project" in told
    assert setup("codex", "--remove", "--project").code == 0
    assert not Path(done["path"]).exists()
    assert setup("--remove").err == ""
    assert setup("vscode", "--hooks").code == 2
    told = setup("copilot", "--hooks", "--project", "--write").err  # It has no tools of a project.
    assert "worlddb setup copilot --write" in told


def test_a_moved_command_is_replaced_and_a_shared_group_keeps_its_other_hooks(
    tmp_path: Path,
) -> None:
    client, path = HOOK_CLIENTS["claude-code"], tmp_path / "settings.json"
    old = hooks_edit(client, str(path), hook_commands(client, ["/old/worlddb"]))
    path.write_bytes(old.after or b"")
    new = hooks_edit(client, str(path), hook_commands(client, ["/new/worlddb"], "--db", "my.db"))
    text = (new.after or b"").decode()
    assert "/old/" not in text
    assert text.count("/new/worlddb hook") == 5
    data = json.loads(text)
    mine = {"type": "command", "command": "mine"}
    data["hooks"]["Stop"][0]["hooks"].append(mine)
    path.write_text(json.dumps(data))
    taken = hooks_removal(client, str(path))
    assert taken is not None
    assert json.loads(taken.after or b"") == {"hooks": {"Stop": [{"hooks": [mine]}]}}


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_an_entry_that_was_set_is_removed_without_a_trace(text: str) -> None:
    data = parse_json(text)
    if "worlddb" in data.get("mcpServers", {}) or not data.get("mcpServers", {"a": 1}):
        return
    out = remove_json(set_json(text, PLACE, ENTRY), PLACE)
    assert out == text or (data == {} and parse_json(out) == {})
    hooked = append_json(text, ("hooks", "Stop"), ENTRY)
    out = remove_json(hooked, ("hooks", "Stop", 0))
    assert out == text or (data == {} and parse_json(out) == {})


@RANDOM
@given(
    data=tables, hooks=st.lists(tables, min_size=1, max_size=3), indent=st.sampled_from([None, 2])
)
def test_an_element_goes_in_and_out_of_any_json(
    data: dict[str, Any], hooks: list[Any], indent: int | None
) -> None:
    text = json.dumps(data | {"hooks": {"Stop": hooks}}, indent=indent)
    after = append_json(text, ("hooks", "Stop"), ENTRY)
    assert json.loads(after)["hooks"]["Stop"] == [*hooks, ENTRY]
    assert remove_json(after, ("hooks", "Stop", len(hooks))) == text
    first = remove_json(after, ("hooks", "Stop", 0))
    assert json.loads(first)["hooks"]["Stop"] == [*hooks[1:], ENTRY]


@pytest.mark.parametrize("text", [text for text in TOML_TEXTS if "worlddb" not in text])
def test_a_toml_table_that_was_set_is_removed_without_a_trace(text: str) -> None:
    place = ("mcp_servers", "worlddb")
    out = remove_toml(set_toml(text, place, ENTRY), place)
    assert out == text or out == f"{text}\n"  # A last line gets its end.


def test_each_client_gets_the_entry_that_it_reads(tmp_path: Path) -> None:
    stdio, url = {}, {}
    for name in ("zed", "windsurf", "gemini", "copilot", "opencode", "cline", "goose"):
        client = CLIENTS[name]
        stdio[name] = stdio_entry(client, ["w"], {"A": "1"})
        url[name] = http_entry(client, "http://h:1", "tok")
        assert client.plain(stdio[name])["env"] == {"A": "1"}
    plain = {"command": "w", "args": ["mcp"], "env": {"A": "1"}}
    assert stdio["zed"] == stdio["windsurf"] == stdio["gemini"] == plain
    assert stdio["copilot"] == {"type": "local", **plain, "tools": ["*"]}
    assert stdio["opencode"] == {
        "type": "local",
        "command": ["w", "mcp"],
        "environment": {"A": "1"},
        "enabled": True,
    }
    assert stdio["goose"]["cmd"] == "w"
    head = {"headers": {"Authorization": "Bearer tok"}}
    assert url["windsurf"] == {"serverUrl": "http://h:1/mcp", **head}
    assert url["gemini"] == {"httpUrl": "http://h:1/mcp", **head}
    assert url["cline"] == {"type": "streamableHttp", "url": "http://h:1/mcp", **head}
    assert url["opencode"]["type"] == "remote"
    assert url["goose"]["uri"] == "http://h:1/mcp"
    refused = setup("zed", "--project", "--http", "http://h:1", "--token", "tok")
    assert "Zed reads no variable" in refused.err


GOOSE = """GOOSE_MODEL: x
extensions: # mine
    developer:
        type: builtin
other: [1, 2]
"""


def test_a_yaml_file_keeps_every_other_line(tmp_path: Path) -> None:
    path = tmp_path / ".config" / "goose" / "config.yaml"
    path.parent.mkdir(parents=True)
    for text in (GOOSE, "GOOSE_MODEL: x\n", "extensions:\n  worlddb: {}\n"):
        path.write_text(text)
        assert setup("goose", "--write").code == 0
        lines = path.read_text().splitlines()
        assert [line for line in lines if "worlddb" not in line and line != "extensions:"] == [
            line for line in text.splitlines() if "worlddb" not in line and line != "extensions:"
        ]
        assert setup("goose", "--write").out.startswith("Goose is already connected")
        setup("goose", "--remove")
        assert not path.exists() if "{}" in text else path.read_text() == text
    for text in ("extensions: {}\n", "extensions:\n  worlddb:\n    type: stdio\n"):
        path.write_text(text)
        refused = setup("goose", "--write")
        assert refused.code != 0
        assert "by hand" in refused.err
        assert path.read_text() == text


def test_the_doctor_tells_whether_hooks_can_be_started(tmp_path: Path) -> None:
    setup("cursor", "--hooks", "--write")
    (found,) = list(examine_hooks())
    assert (found.part, found.verdict) == ("Cursor hooks", "ok")
    path = tmp_path / ".cursor" / "hooks.json"
    path.write_text(path.read_text().replace(found.seen.split()[1], "/gone/worlddb"))
    (found,) = list(examine_hooks())
    assert found.verdict == "fail"
    assert found.advice == "worlddb setup cursor --hooks --write"
    path.write_text("{nonsense")
    assert [one.verdict for one in examine_hooks()] == ["fail"]
