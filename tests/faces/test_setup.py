"""setup: client settings printed, shown as a diff, and written without harm to anything else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinning import examples
from worlddb.errors import ConflictError, FormatError
from worlddb.faces.clients.client_catalog import CLIENTS, client_named, http_entry, merged_entry
from worlddb.faces.clients.client_file import EDITORS, apply_edit, edit_for, parse_toml, set_toml
from worlddb.faces.clients.settings_text import parse_json, set_json

from .command import DEADLINE_S, Result, environment, in_process

ENTRY: dict[str, Any] = {"command": "/bin/worlddb", "args": ["mcp"], "env": {"A": 'ü "x"\\'}}
PLACE = ("mcpServers", "worlddb")
RANDOM = settings(derandomize=True, deadline=None, database=None, max_examples=examples(200, 80))
ON_LINUX = sys.platform == "linux"


def setup(home: Path, *arguments: object, **env: str) -> Result:
    return in_process("setup", *arguments, env={"HOME": str(home), **env}, cwd=home)


def path_of(name: str, home: Path) -> Path:
    return Path(in_process("setup", name, "--json", env={"HOME": str(home)}).data["path"])


@pytest.mark.parametrize("name", CLIENTS)
def test_without_write_the_settings_are_printed_and_nothing_is_touched(
    name: str, tmp_path: Path
) -> None:
    done = setup(tmp_path, name, "--user-id", "ada", "--db", "my.db")
    assert done.code == 0
    client = CLIENTS[name]
    entry = client.plain(EDITORS[client.format][2](done.out)[client.key]["worlddb"])
    assert entry["env"] == {"WORLDDB_PATH": str(tmp_path / "my.db"), "WORLDDB_SCOPE": "ada"}
    assert entry["args"][-1] == "mcp"
    assert os.path.isabs(entry["command"])
    assert "--write" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_write_makes_the_file_and_a_second_time_changes_nothing(name: str, tmp_path: Path) -> None:
    done = setup(tmp_path, name, "--write", "--json")
    path = Path(done.data["path"])
    assert path.is_relative_to(tmp_path)
    assert (done.data["written"], done.data["backup"]) == (True, None)
    assert path.stat().st_mode & 0o777 == 0o600
    first = path.read_bytes()
    again = setup(tmp_path, name, "--write")
    assert again.out.startswith(f"{CLIENTS[name].title} is already connected")
    assert path.read_bytes() == first
    assert [item.name for item in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(not ON_LINUX, reason="the paths of Linux")
def test_each_client_has_its_own_place() -> None:
    places = {name: client.path() for name, client in CLIENTS.items()}
    home = os.path.expanduser("~")
    assert places == {
        "claude": f"{home}/.config/Claude/claude_desktop_config.json",
        "claude-code": f"{home}/.claude.json",
        "cursor": f"{home}/.cursor/mcp.json",
        "vscode": f"{home}/.config/Code/User/mcp.json",
        "codex": f"{home}/.codex/config.toml",
        "windsurf": f"{home}/.codeium/windsurf/mcp_config.json",
        "zed": f"{home}/.config/zed/settings.json",
        "gemini": f"{home}/.gemini/settings.json",
        "copilot": f"{home}/.copilot/mcp-config.json",
        "opencode": f"{home}/.config/opencode/opencode.json",
        "cline": f"{home}/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
        "cline_mcp_settings.json",
        "goose": f"{home}/.config/goose/config.yaml",
    }


def test_macs_and_windows_have_their_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/Users/ada")
    monkeypatch.setattr(sys, "platform", "darwin")
    support = "/Users/ada/Library/Application Support"
    assert CLIENTS["claude"].path() == f"{support}/Claude/claude_desktop_config.json"
    assert CLIENTS["vscode"].path() == f"{support}/Code/User/mcp.json"
    assert CLIENTS["cursor"].path() == "/Users/ada/.cursor/mcp.json"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", "/roaming")
    assert CLIENTS["claude"].path() == "/roaming/Claude/claude_desktop_config.json"
    monkeypatch.setenv("CODEX_HOME", "/codex")
    assert CLIENTS["codex"].path() == "/codex/config.toml"


def test_the_settings_of_a_project_lie_in_its_folder(tmp_path: Path) -> None:
    places = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json"}
    places |= {"vscode": ".vscode/mcp.json", "codex": ".codex/config.toml"}
    for name, place in places.items():
        assert setup(tmp_path, name, "--project", "--write").code == 0
        assert (tmp_path / place).is_file()
        assert str(tmp_path) not in (tmp_path / place).read_text()
        setup(tmp_path, name, "--project", "--db", tmp_path / "sub" / "m.db", "--write")
        told = (tmp_path / place).read_text()
        assert "sub/m.db" in told
        assert str(tmp_path) not in told
        # What others get to see has no path of this machine, and no token.
        url = "http://memory.example.org"
        shared = setup(tmp_path, name, "--project", "--http", url, WORLDDB_TOKEN="s3cret").out
        assert "WORLDDB_TOKEN" in shared
        assert "s3cret" not in shared
        mine = {"WORLDDB_PATH": "/home/ada/m.db", "WORLDDB_MODELS": "/home/ada/models"}
        assert "/home/ada" not in setup(tmp_path, name, "--project", **mine).out
        outside = setup(tmp_path, name, "--project", "--db", "/home/ada/m.db")
        assert (outside.code, "outside the project" in outside.err) == (2, True)
    outside = setup(tmp_path, "cursor", "--hooks", "--project", "--db", "/home/ada/m.db")
    assert (outside.code, "outside the project" in outside.err) == (2, True)
    refused = setup(tmp_path, "claude", "--project")
    assert (refused.code, refused.out) == (2, "")
    assert "Claude Desktop has no settings for a project" in refused.err


def test_a_backup_is_kept_and_the_rest_of_the_file_stays_byte_for_byte(tmp_path: Path) -> None:
    path = path_of("vscode", tmp_path)
    path.parent.mkdir(parents=True)
    before = '{\n\t// mine\n\t"servers": {\n\t\t"other": {"command":"x",  "n": 1.50},\n\t},\n}\n'
    path.write_text(before)
    path.chmod(0o666)
    shown = setup(tmp_path, "vscode", "--dry-run")
    assert shown.code == 0
    assert {line[0] for line in shown.out.splitlines()[3:]} == {" ", "+"}
    assert '+\t\t"worlddb": {' in shown.out.splitlines()
    assert path.read_text() == before
    done = setup(tmp_path, "vscode", "--write", "--json").data
    assert re.fullmatch(re.escape(f"{path}.") + r"\d{8}T\d{6}Z\.backup", done["backup"])
    assert Path(done["backup"]).read_text() == before
    assert path.stat().st_mode & 0o777 == 0o666
    after = path.read_text()
    added = after[after.index('\n\t\t"worlddb"') : after.index("\n\t},\n}")]
    assert after.replace(added, "") == before
    assert parse_json(after)["servers"]["worlddb"]["type"] == "stdio"


def test_what_the_user_added_to_our_entry_stays(tmp_path: Path) -> None:
    path = path_of("cursor", tmp_path)
    path.parent.mkdir(parents=True)
    old = {"command": "old", "args": ["x"], "disabled": True, "env": {"WORLDDB_EMBEDDER": "hash"}}
    path.write_text(json.dumps({"mcpServers": {"worlddb": old, "z": {"command": "z"}}, "n": 1}))
    assert setup(tmp_path, "cursor", "--db", "/m.db", "--write").code == 0
    found = json.loads(path.read_text())
    assert found["mcpServers"]["worlddb"]["disabled"] is True
    assert found["mcpServers"]["worlddb"]["env"] == {
        "WORLDDB_EMBEDDER": "hash",
        "WORLDDB_PATH": "/m.db",
    }
    assert found["mcpServers"]["worlddb"]["command"] != "old"
    assert found["mcpServers"]["z"] == {"command": "z"}
    assert setup(tmp_path, "cursor", "--http", "http://localhost:1", "--write").code == 0
    entry = json.loads(path.read_text())["mcpServers"]["worlddb"]
    assert entry == {"url": "http://localhost:1/mcp", "disabled": True}


@pytest.mark.parametrize("name", ["cursor", "codex"])
@pytest.mark.parametrize(
    "content",
    [
        b"{ not json",
        b'{"mcpServers": [1]}',
        b"[1, 2]",
        b'{"mcpServers": {}, "mcpServers": {}}',
        b"mcp_servers = 3",
        b"[mcp_servers\n",
        b"\xff\xfe\x00",
        b'{"a": 1} trailing',
        b'{"a": "unclosed}',
        b"{" * 5_000,
    ],
)
def test_a_file_that_cannot_be_parsed_is_refused_and_left_as_it_is(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = path_of(name, tmp_path)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(str(path))):
        edit_for(client_named(name), str(path), ENTRY)
    if content == b"{ not json":
        done = setup(tmp_path, name, "--write")
        assert (done.code, done.out) == (6, "")
        assert done.err.count("\n") == 1
    assert path.read_bytes() == content
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    edit = edit_for(CLIENTS["cursor"], str(path), ENTRY)
    path.write_text('{"new": 1}')
    with pytest.raises(ConflictError, match="was changed in the meantime"):
        apply_edit(edit)
    assert path.read_text() == '{"new": 1}'
    assert not [item for item in tmp_path.iterdir() if item.name.endswith(".part")]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, path = tmp_path / "dotfiles.json", tmp_path / "mcp.json"
    real.write_text("{}")
    path.symlink_to(real)
    apply_edit(edit_for(CLIENTS["cursor"], str(path), ENTRY))
    assert path.is_symlink()
    assert parse_json(real.read_text())["mcpServers"]["worlddb"] == ENTRY


def test_a_server_is_reached_over_http_with_its_token(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8765"
    headers = {"Authorization": "Bearer s3cret"}
    assert http_entry(CLIENTS["cursor"], url, "s3cret") == {"url": f"{url}/mcp", "headers": headers}
    assert http_entry(CLIENTS["vscode"], f"{url}/mcp", None) == {
        "type": "http",
        "url": f"{url}/mcp",
    }
    done = setup(tmp_path, "codex", "--http", url, WORLDDB_TOKEN="s3cret")
    assert tomllib.loads(done.out)["mcp_servers"]["worlddb"] == {
        "url": f"{url}/mcp",
        "http_headers": headers,
    }


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["emacs"], "invalid choice"),
        (
            ["claude", "--http", "http://localhost:1"],
            "starts its servers itself; leave --http out\n",
        ),
        (
            ["claude", "--http", "http://10.0.0.7:1"],
            "starts its servers itself; leave --http out\n",
        ),
        (["claude", "--http", "https://memory.example.org"], "as a connector"),
        (["cursor", "--http", "localhost:1"], "is not an address"),
        (["cursor", "--http", "http://x", "--token", "a b"], "HTTP headers do not allow"),
        (["cursor", "--http", "http://x", "--db", "y"], "has its own store"),
        (["cursor", "--token", "t"], "needs --http"),
        ([], "CLIENT"),
    ],
)
def test_a_wrong_command_is_one_line_and_code_2(
    arguments: list[str], complaint: str, tmp_path: Path
) -> None:
    done = setup(tmp_path, *arguments)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_only_what_this_shell_alone_knows_is_told_to_the_client(tmp_path: Path) -> None:
    def env(*arguments: object, **given: str) -> dict[str, str]:
        shown: dict[str, Any] = setup(tmp_path, "cursor", "--json", *arguments, **given).data
        found: dict[str, str] = shown["entry"].get("env", {})
        return found

    assert env() == {}
    assert env(WORLDDB_EMBEDDER="hash", WORLDDB_LLM_API_KEY="sk") == {"WORLDDB_EMBEDDER": "hash"}
    file = tmp_path / "c.toml"
    file.write_text("user_id = 'ada'")
    assert env(WORLDDB_CONFIG="c.toml") == {"WORLDDB_CONFIG": str(file)}


def test_what_was_written_starts_a_server_on_the_chosen_store(tmp_path: Path) -> None:
    store = tmp_path / "of ada.db"
    options = ("claude", "--db", store, "--write")
    assert in_process("setup", *options, env={"HOME": str(tmp_path)}, cwd=tmp_path).code == 0
    entry = json.loads(path_of("claude", tmp_path).read_text())["mcpServers"]["worlddb"]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    # A desktop starts it with next to nothing in the environment.
    given = {name: value for name, value in environment().items() if name == "PYTHONPATH"}
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(hello).encode() + b"\n",
        capture_output=True,
        env={**given, "HOME": str(tmp_path), **entry["env"]},
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["result"]["serverInfo"]["name"] == "worlddb"
    assert store.is_file()


def test_merging_keeps_other_keys_and_drops_the_other_transport() -> None:
    old = {"url": "http://x", "headers": {"a": "b"}, "timeout": 3, "env": {"B": "1"}}
    assert merged_entry(old, ENTRY) == ENTRY | {"timeout": 3, "env": {"B": "1"} | ENTRY["env"]}
    assert merged_entry("nonsense", ENTRY) == ENTRY


JSON_TEXTS = [
    "",
    "\n",
    "{}",
    "{ }\n",
    "{\r\n}\r\n",
    '{"mcpServers": {}}',
    '{"mcpServers":{"a":{}}}',
    '{"mcpServers": {"a": 1,}}',
    '{\n    "x": 1, // last\n}',
    '{\n  "mcpServers": {\n    "a": {} // note\n  }\n}\n',
    '{\n  "mcpServers": {\n    // nothing yet\n  }\n}\n',
    '{\n  "mcpServers": {\n    "a": {},\n    /* the end */\n  },\n}\n',
    '// head\n{\n  "worlddb": "not this one",\n  "mcpServers": {"a": "}"}\n}\n// tail',
    '{"a": [1, 2, {"mcpServers": {"worlddb": 0}}], "b": "\\"{"}',
    '{\r\n\t"a": 1\r\n}\r\n',
]


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_an_entry_is_set_in_any_json_and_set_again_by_replacing_it(text: str) -> None:
    data = parse_json(text)
    servers = data.get("mcpServers", {})
    first = set_json(text, PLACE, ENTRY)
    assert parse_json(first) == data | {"mcpServers": servers | {"worlddb": ENTRY}}
    second = set_json(first, PLACE, {"command": "y"})
    assert parse_json(second) == data | {"mcpServers": servers | {"worlddb": {"command": "y"}}}
    assert set_json(second, PLACE, ENTRY) == first
    if "\r\n" in text:
        assert "\n" not in first.replace("\r\n", "")
    for comment in re.findall(r"//.*|/\*.*\*/", text):
        assert comment in first


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
tables = st.dictionaries(st.text(max_size=6), plain, max_size=4)


@RANDOM
@given(data=tables, servers=st.none() | tables, indent=st.sampled_from([None, 0, 2, "\t"]))
def test_every_other_byte_of_a_json_file_survives(
    data: dict[str, Any], servers: dict[str, Any] | None, indent: Any
) -> None:
    data.pop("mcpServers", None)
    if servers is not None:
        servers.pop("worlddb", None)
        data["mcpServers"] = servers
    text = json.dumps(data, indent=indent)
    after = set_json(text, PLACE, ENTRY)
    expected = data | {"mcpServers": (servers or {}) | {"worlddb": ENTRY}}
    assert json.loads(after) == expected
    assert is_text_with_insertions(text, after)
    replaced = set_json(after, PLACE, {"command": "y"})
    changed = "".join(changed_part(after, replaced).split())
    assert changed in "".join(json.dumps(ENTRY, ensure_ascii=False).split())
    assert json.loads(replaced)["mcpServers"] == (servers or {}) | {"worlddb": {"command": "y"}}


def is_text_with_insertions(before: str, after: str) -> bool:
    """Return whether `after` is `before` with text put in, white space aside."""
    rest = iter(after)
    return all(letter in rest for letter in before if not letter.isspace())


def changed_part(one: str, other: str) -> str:
    """Return what stands in `one` between its shared beginning and its shared end with `other`."""
    least = min(len(one), len(other))
    begin = next((at for at in range(least) if one[at] != other[at]), least)
    end = next((at for at in range(least - begin) if one[-1 - at] != other[-1 - at]), 0)
    return one[begin : len(one) - end]


TOML_TEXTS = [
    "",
    'model = "o3"',
    'model = "o3"\n\n[mcp_servers.other]\ncommand = "x" # note\n',
    '[mcp_servers.worlddb]\ncommand = "old"\n\n[mcp_servers.worlddb.env]\nA = "1"\n\n'
    "# of next\n[x]\ny=1\n",
    '[mcp_servers."worlddb"]\ncommand = "old"\n',
    '[ mcp_servers . worlddb ] # ours\ncommand = "old"\n[[list]]\na = 1\n[[list]]\na = 2\n',
    's = """\n[mcp_servers.worlddb]\ncommand = "no"\n"""\n'
    "t = '''\n[x]'''\n[z]\nq = \"\\\"[y]\"\n",
    'a = [\n  [1, 2],\n  [\n  3]\n]\n[mcp_servers.worlddb]\nargs = [\n  "a", # ]\n  "b"\n]\n[b]\n',
    '[mcp_servers.worlddb]\nargs = [\n  ["a"],\n  []\n]\n[b]\n',
    '[mcp_servers]\n[mcp_servers.worlddb_more]\ncommand = "m"\n',
    'x = nan\r\n[mcp_servers.a]\r\ncommand = "c"\r\n',
    'd = 1979-05-27T07:32:00Z\nf = 1e3\n"quoted.key" = 1\n',
]


@pytest.mark.parametrize("text", TOML_TEXTS)
def test_an_entry_is_set_in_any_toml_and_set_again_by_replacing_it(text: str) -> None:
    place = ("mcp_servers", "worlddb")
    data = parse_toml(text)
    servers = data.get("mcp_servers", {})
    first = set_toml(text, place, ENTRY)
    assert repr(parse_toml(first).pop("mcp_servers")["worlddb"]) == repr(ENTRY)
    second = set_toml(first, place, {"command": "y"})
    expected = {**data, "mcp_servers": {**servers, "worlddb": {"command": "y"}}}
    assert sorted(repr(parse_toml(second))) == sorted(repr(expected))
    assert set_toml(second, place, ENTRY) == first
    if "worlddb" not in servers:
        assert first.startswith(text)
    for comment in re.findall(r"# (?:note|of next)", text):
        assert comment in first
        assert comment in second
    if text.count("\r\n") == text.count("\n") > 0:
        assert first.count("\r\n") == first.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { a = { command = "x" } }\n',
        'mcp_servers = { worlddb = { command = "x" } }\n',
        'mcp_servers.worlddb.command = "x"\n',
        '[mcp_servers]\nworlddb = { command = "x" }\n',
    ],
)
def test_toml_is_edited_in_every_notation(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"# head\n{text}# tail\n[x]\ny = 1 # note\n")
    before = tomllib.loads(path.read_text())
    apply_edit(edit_for(CLIENTS["codex"], str(path), ENTRY))
    after = path.read_text()
    assert tomllib.loads(after) == {
        **before,
        "mcp_servers": {**before["mcp_servers"], "worlddb": ENTRY},
    }
    assert after.startswith("# head\n")
    assert "# tail\n[x]\ny = 1 # note\n" in after


def test_an_edit_that_would_change_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("x = 1\n")
    monkeypatch.setitem(EDITORS, "toml", (lambda *_: "x = 2\n", *EDITORS["toml"][1:]))
    with pytest.raises(FormatError, match=r"add the entry mcp_servers\.worlddb by hand"):
        edit_for(CLIENTS["codex"], str(path), ENTRY)
    assert path.read_text() == "x = 1\n"


names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=6)
toml_values = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | names
toml_entries = st.dictionaries(
    names,
    toml_values | st.lists(names, max_size=3) | st.dictionaries(names, toml_values, max_size=2),
    max_size=4,
)


@RANDOM
@given(entry=toml_entries, before=st.sampled_from(TOML_TEXTS))
def test_what_is_written_as_toml_is_read_back_as_it_was(entry: dict[str, Any], before: str) -> None:
    after = set_toml(before, ("mcp_servers", "worlddb"), entry)
    assert parse_toml(after)["mcp_servers"]["worlddb"] == entry


def test_each_client_is_told_the_variable_of_a_token_in_its_own_way() -> None:
    told = {
        name: http_entry(CLIENTS[name], "http://x.org", "t", in_project=True)
        for name in ("claude-code", "cursor", "vscode", "codex")
    }
    assert told["claude-code"]["headers"] == {"Authorization": "Bearer ${WORLDDB_TOKEN}"}
    for name in ("cursor", "vscode"):
        assert told[name]["headers"] == {"Authorization": "Bearer ${env:WORLDDB_TOKEN}"}
    assert told["codex"] == {"url": "http://x.org/mcp", "bearer_token_env_var": "WORLDDB_TOKEN"}
