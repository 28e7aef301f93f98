"""Configuration: flags over environment over file over defaults, and what `config` shows of it."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.faces.face_settings import KINDS, Settings, open_memory, origins, settings_from

from .command import in_process, on_terminal

FILE = """
path = "file.db"
user_id = "from file"
host = "::1"
port = 1
allowed_hosts = ["a.example", "b.example"]
log_level = "debug"
consolidate_every_s = 60
llm_api_key = "sk-file"
"""
SECRETS = {"token", "embedder_key", "llm_api_key", "key"}


def flags(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**given)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "config.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    monkeypatch.setenv("WORLDDB_CONFIG", str(path))
    return path


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLDDB_PORT", "2")
    monkeypatch.setenv("WORLDDB_SCOPE", "from environment")
    found = settings_from(flags(port=3, user_id=None, db="flag.db"))
    assert found == Settings(
        path="flag.db",
        user_id="from environment",
        host="::1",
        port=3,
        allowed_hosts=("a.example", "b.example"),
        log_level="debug",
        consolidate_every_s=60.0,
        llm_api_key="sk-file",
    )
    assert {one.name: one.origin for one in origins(flags(port=3))} == {
        name: {
            "path": f"file {file}",
            "user_id": "environment WORLDDB_SCOPE",
            "host": f"file {file}",
            "port": "flag --port",
            "allowed_hosts": f"file {file}",
            "log_level": f"file {file}",
            "consolidate_every_s": f"file {file}",
            "llm_api_key": f"file {file}",
        }.get(name, "default")
        for name in KINDS
    }


def test_every_setting_can_be_given_in_each_of_the_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"port": "99", "log_level": "error", "extractor": "verbatim"}
    texts |= {"verify_reads": "false", "audit_reads": "true", "hook_timeout_s": "2.5"}
    texts |= {"consolidate_every_s": "1.5", "allowed_hosts": "x", "allowed_origins": "x"}
    texts |= {"trusted_proxies": "x", "tools": "graph", "stores_open": "7"}
    texts |= {"workers": "3"}
    typed: dict[str, Any] = {"port": 99, "consolidate_every_s": 1.5, "verify_reads": False}
    typed |= {"hook_timeout_s": 2.5, "stores_open": 7, "audit_reads": True, "workers": 3}
    typed |= {"allowed_hosts": ["x"], "allowed_origins": ["x"], "trusted_proxies": ["x"]}
    texts |= {"oauth_per_minute": "9", "oauth_audience": "x", "oauth_roles": "x"}
    texts |= {"oauth_bounds": "x"}
    typed |= {"oauth_per_minute": 9, "oauth_audience": ["x"], "oauth_roles": ["x"]}
    typed |= {"oauth_bounds": ["x"]}
    texts |= {"edge_types": '[{"type": "x"}]'}
    typed |= {"edge_types": [{"type": "x"}]}
    for name, kind in KINDS.items():
        text = texts.get(name, "/x")
        expected = typed.get(name, text)
        expected = tuple(expected) if isinstance(expected, list) else expected
        assert getattr(settings_from(flags(**{kind.flag or name: text})), name) == expected
        monkeypatch.setenv(kind.variable, text)
        assert getattr(settings_from(flags()), name) == expected
        monkeypatch.delenv(kind.variable)
        path = tmp_path / f"{name}.toml"
        in_file = '[{type = "x"}]' if name == "edge_types" else json.dumps(typed.get(name, text))
        path.write_text(f"{name} = {in_file}\n")
        monkeypatch.setenv("WORLDDB_CONFIG", str(path))
        assert getattr(settings_from(flags()), name) == expected
        monkeypatch.setenv("WORLDDB_CONFIG", os.devnull)
        assert getattr(settings_from(flags()), name) != expected


def test_paths_in_the_file_start_from_its_folder_and_know_the_home(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_from(flags()).path == str(file.parent / "file.db")
    monkeypatch.setenv("HOME", "/home/ada")
    file.write_text('path = "~/m.db"\nmodels_dir = "models"\ntokens_file = "/etc/tokens"')
    found = settings_from(flags())
    assert found.path == "/home/ada/m.db"
    assert found.models_dir == str(file.parent / "models")
    assert found.tokens_file == "/etc/tokens"
    assert settings_from(flags(db=":memory:")).path == ":memory:"
    monkeypatch.setenv("WORLDDB_PATH", "here.db")
    assert settings_from(flags()).path == "here.db"


@pytest.mark.parametrize(
    ("text", "error", "complaint"),
    [
        (
            'pathh = "x"',
            InvalidInputError,
            "'pathh' is not a setting; known are path, user_id",
        ),
        ("[llm]\nmodel = 'x'", InvalidInputError, "'llm' is not a setting"),
        ("port = 'http'", InvalidInputError, "port: 'http' is not a whole number from 0 to 65535"),
        ("port = true", InvalidInputError, "port: True is not a whole number"),
        ("port = 65536", InvalidInputError, "port: 65536 is not a whole number"),
        ("port = 1.5", InvalidInputError, "port: 1.5 is not a whole number"),
        ("user_id = 7", InvalidInputError, "user_id: give text, in quotes"),
        ("user_id = ''", InvalidInputError, "user_id: is empty"),
        ("allowed_hosts = [1]", InvalidInputError, "allowed_hosts: give text, in quotes"),
        ("allowed_hosts = 1", InvalidInputError, "allowed_hosts: give a list of texts"),
        ("log_level = 'loud'", InvalidInputError, "log_level: 'loud' is not one of debug, info"),
        ("extractor = 'magic'", InvalidInputError, "not one of rules, verbatim, llm"),
        ('edge_types = ["x"]', InvalidInputError, "give a list of edge types"),
        ("consolidate_every_s = -1", InvalidInputError, "not a number of seconds above 0"),
        ("consolidate_every_s = nan", InvalidInputError, "not a number of seconds above 0"),
        ("path = 1979-05-27", InvalidInputError, "path: give text, in quotes"),
        ("path = ", FormatError, "is not TOML"),
        ("x" * (1 << 20) + "x", FormatError, "larger than 1 MiB"),
        ("a = " + "[" * 100_000, FormatError, "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_path_and_what_to_write(
    file: Path, text: str, error: type[Exception], complaint: str
) -> None:
    file.write_text(text)
    with pytest.raises(error) as caught:
        settings_from(flags())
    assert str(caught.value).startswith(f"{file}: ")
    assert complaint in str(caught.value)


def test_a_file_that_is_named_has_to_be_there_and_to_be_text(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(b"path = '\xff'")
    with pytest.raises(FormatError, match="is not UTF-8"):
        settings_from(flags())
    file.unlink()
    with pytest.raises(StorageError, match="does not exist, but WORLDDB_CONFIG names it"):
        settings_from(flags())
    monkeypatch.setenv("WORLDDB_CONFIG", str(file.parent))
    with pytest.raises(StorageError, match="cannot be read"):
        settings_from(flags())


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("WORLDDB_PORT", "http", "WORLDDB_PORT: 'http' is not a whole number"),
        ("WORLDDB_PORT", "１２", "not a whole number"),
        ("WORLDDB_VERIFY_READS", "never", "WORLDDB_VERIFY_READS: 'never' is neither true nor"),
        ("WORLDDB_LOG_LEVEL", "loud", "WORLDDB_LOG_LEVEL: 'loud' is not one of debug"),
        ("WORLDDB_CONSOLIDATE_EVERY_S", "often", "WORLDDB_CONSOLIDATE_EVERY_S: 'often' is no"),
    ],
)
def test_a_wrong_variable_is_one_line_that_names_it(
    variable: str, value: str, complaint: str
) -> None:
    done = in_process("config", env={variable: value})
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_the_users_own_file_is_found_without_being_named(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")}
    path = Path(in_process("config", "--json", env=home).data["file"])
    assert path.is_relative_to(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("user_id = 'ada'")
    shown = in_process("config", "--json", env=home).data
    assert {"name": "user_id", "value": "ada", "origin": f"file {path}"} in shown["settings"]
    assert sum(one["origin"] == "default" for one in shown["settings"]) == len(KINDS) - 1


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    hidden = "hunter2-hunter2"
    env = {KINDS[name].variable: hidden for name in SECRETS}
    env |= {"WORLDDB_LLM_BASE_URL": f"https://me:{hidden}@example.org/v1"}
    env |= {"WORLDDB_EMBEDDER": f"https://{hidden}@example.org/v1#model"}
    plain, data = in_process("config", env=env), in_process("config", "--json", env=env)
    for done in (plain, data):
        assert done.code == 0
        assert hidden not in done.out + done.err
    rows = {one["name"]: one["value"] for one in data.data["settings"]}
    assert {rows[name] for name in SECRETS} == {"(hidden)"}
    assert rows["llm_base_url"] == "https://***@example.org/v1"
    assert {name for name, kind in KINDS.items() if kind.is_secret} == SECRETS
    assert hidden not in repr(Settings(path="x", token=hidden, llm_api_key=hidden))


def test_the_table_says_where_each_value_comes_from(tmp_path: Path) -> None:
    done = in_process("config", "--db", "x.db", env={"WORLDDB_TOKEN": "t", "WORLDDB_PORT": ""})
    lines = [line.split(maxsplit=2) for line in done.out.splitlines()]
    assert lines[0] == ["setting", "value", "origin"]
    assert ["path", "x.db", "flag --db"] in lines
    assert ["token", "(hidden)", "environment WORLDDB_TOKEN"] in lines
    assert ["port", "8765", "default"] in lines
    assert ["user_id", "-", "default"] in lines
    code, screen = on_terminal("config")
    assert code == 0
    assert "\x1b[2msetting" in screen


def test_a_store_is_opened_as_the_settings_say(tmp_path: Path) -> None:
    settings = Settings(path=str(tmp_path / "m.db"), user_id="ada", extractor="verbatim")
    with pytest.raises(StorageError, match="there is no store here"):
        open_memory(settings, create=False, actor="me")
    with open_memory(settings, actor="me") as memory:
        written = memory.write("My boss is Eve")
        assert [str(scope) for scope in written.scopes] == ["user:ada"]
        assert written.entities == ()
        assert written.commit is not None
        assert written.commit.actor == "me"
    model = Settings(path=settings.path, extractor="llm")
    with pytest.raises(InvalidInputError, match="no language model is configured"):
        open_memory(model, actor="me")


def test_commands_work_on_the_store_that_the_file_names(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('path = "of-the-file.db"')
    done = in_process("log", env={"WORLDDB_CONFIG": str(path)})
    assert done.err.startswith(f"worlddb: {tmp_path}/of-the-file.db: there is no store here")
    assert in_process("log", "--db", tmp_path / "other.db").err.startswith(
        f"worlddb: {tmp_path}/other.db"
    )


def test_edge_types_of_the_settings_are_declared_by_whoever_may_write(tmp_path: Path) -> None:
    given = {"type": "manages", "acyclic": True, "inverse": "managed_by"}
    store = Settings(path=str(tmp_path / "a.db"), embedder="none", edge_types=(given,))
    for _ in range(2):  # The second time there is nothing to write.
        with open_memory(store, actor="x") as memory:
            types = {one.type: one.declaration for one in memory.edge_types().types}
            assert types["manages"] is not None
            assert types["manages"].acyclic
            assert "managed_by" in types
            assert memory.db.log()[-1].seq == 1
    for wrong, message in (({"loud": True}, "loud"), ({"acyclic": "no"}, "acyclic")):
        bad = replace(store, edge_types=({"type": "x", **wrong},))
        with pytest.raises(InvalidInputError, match=message):
            open_memory(bad, actor="x")
        open_memory(bad, create=False, actor="x").close()


def test_edge_types_of_the_settings_hold_for_a_store_that_was_there_before(tmp_path: Path) -> None:
    store = ("--db", tmp_path / "a.db")
    ids = [in_process("write", text, "--json", *store).data["id"] for text in ("A dog.", "A cat.")]
    path = tmp_path / "config.toml"
    path.write_text('[[edge_types]]\ntype = "manages"\nacyclic = true\n')
    env = {"WORLDDB_CONFIG": str(path)}
    shown = in_process("config", env=env)
    [told] = [row for row in shown.rows if row.startswith("edge_types")]
    assert '{"type": "manages", "acyclic": true}' in told
    assert "manages" not in in_process("ontology", *store, env=env).out  # It only reads.
    edge = in_process("link", "manages", *ids, "--json", *store, env=env)
    assert (edge.code, edge.data["type"]) == (0, "manages"), edge.err


def test_an_edge_type_for_a_scope_that_is_not_there_waits(tmp_path: Path) -> None:
    given = {"type": "manages", "user_id": "ada"}
    store = Settings(path=str(tmp_path / "a.db"), embedder="none", edge_types=(given,))
    with open_memory(store, actor="x") as memory:
        memory.write("I like tea.", user_id="ada")
        assert "manages" not in [one.type for one in memory.edge_types(user_id="ada").types]
    with open_memory(store, actor="x") as memory:
        assert "manages" in [one.type for one in memory.edge_types(user_id="ada").types]
        assert "manages" not in [one.type for one in memory.edge_types().types]
