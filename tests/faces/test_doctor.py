"""doctor: what is examined, what it says of each part, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embed.server import Answer, in_turn, serving
from worlddb.faces import diagnosis

from .command import Result, in_process, on_terminal
from .http.serving import Process
from .samples import Sample

HASH = ("--embedder", "hash")


def doctor(home: Path, *arguments: object, **env: str) -> Result:
    return in_process("doctor", *HASH, *arguments, env={"HOME": str(home), **env}, cwd=home)


def verdicts(done: Result) -> dict[str, str]:
    found = done.data["findings"]
    return {one["part"]: one["verdict"] for one in found}


def seen(done: Result, part: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [one for one in done.data["findings"] if one["part"] == part]
    return found[-1]


def test_a_fresh_installation_is_healthy_and_told_what_to_do_next(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json")
    assert done.code == 0
    assert done.data["healthy"] is True
    assert verdicts(done) == {
        "config": "ok",
        "store": "warn",
        "embedder": "ok",
        "language model": "ok",
        "server": "ok",
        "clients": "warn",
    }
    assert "worlddb write" in seen(done, "store")["advice"]
    assert "worlddb setup" in seen(done, "clients")["advice"]
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_the_server_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "is_installed", lambda: False)
    first = next(diagnosis.examine_clients())
    assert (first.part, first.verdict) == ("server", "warn")
    assert first.advice == 'pip install "worlddb[server]"'


def test_wide_rights_of_the_keys_of_sealed_backups_are_told(own: Sample, tmp_path: Path) -> None:
    own.path.chmod(0o600)
    sealed = tmp_path / "monday.sealed"
    assert in_process("backup", "--sealed", sealed, "--db", own.path).code == 0
    keys = own.path.with_name(f"{own.path.name}-backup-keys")
    assert "rights" not in verdicts(doctor(tmp_path, "--db", own.path, "--json"))
    elsewhere = tmp_path / "stick"  # Also where the keys are a link.
    keys.rename(elsewhere)
    keys.symlink_to(elsewhere)
    elsewhere.chmod(0o640)
    told = doctor(tmp_path, "--db", own.path, "--json")
    assert verdicts(told)["rights"] == "warn"
    assert str(keys) in seen(told, "rights")["advice"]


def test_a_sound_store_is_described(own: Sample, tmp_path: Path) -> None:
    assert in_process("recall", "CEO", "--everyone", *HASH, "--db", own.path).code == 0
    done = doctor(tmp_path, "--json", "--db", own.path)
    assert done.code == 0
    assert verdicts(done)["soundness"] == "ok"
    assert "commit 4" in seen(done, "store")["seen"]
    assert "embedded by hash-64" in seen(done, "vectors")["seen"]
    plain = doctor(tmp_path, "--db", own.path).out
    assert plain.splitlines()[1].startswith(f"ok    store: {own.path}: format ")
    _, screen = on_terminal("doctor", *HASH, "--db", own.path)
    assert "\x1b[32mok  \x1b[0m  soundness" in screen


def test_a_store_that_a_server_has_just_made_is_described(tmp_path: Path) -> None:
    with Process(tmp_path / "m.db"):
        told = seen(doctor(tmp_path, "--json", "--db", tmp_path / "m.db"), "store")["seen"]
    assert "nothing written" in told
    assert "format 0" not in told


def test_what_does_not_work_fails_with_what_to_do_and_exit_code_1(
    own: Sample, tmp_path: Path
) -> None:
    name = own.topic.name.encode()
    data = own.path.read_bytes()
    assert name in data
    own.path.write_bytes(data.replace(name, name[::-1]))
    broken = doctor(tmp_path, "--json", "--db", own.path)
    assert broken.code == 1
    assert "fail" in (verdicts(broken).get("soundness"), verdicts(broken)["store"])
    text = tmp_path / "notes.txt"
    text.write_text("shopping list\n" * 500)
    strange = doctor(tmp_path, "--db", text)
    assert strange.code == 1
    assert "FAIL  store: cannot be opened" in strange.out
    nowhere = doctor(tmp_path, "--db", tmp_path / "no" / "m.db")
    assert nowhere.code == 1
    assert "→ create the folder" in nowhere.out


def test_an_embedder_that_is_missing_or_another_than_the_stores_fails(
    own: Sample, tmp_path: Path
) -> None:
    missing = doctor(tmp_path, "--embedder", "arctic-embed-s", "--json")
    assert missing.code == 1
    assert "worlddb models install arctic-embed-s" in seen(missing, "embedder")["seen"]
    assert in_process("recall", "CEO", "--everyone", *HASH, "--db", own.path).code == 0
    other = doctor(tmp_path, "--embedder", "hash-32", "--json", "--db", own.path)
    assert other.code == 1
    assert "reindex --embedder hash-32" in seen(other, "embedder")["advice"]
    none = doctor(tmp_path, "--embedder", "none", "--json")
    assert none.code == 0


def test_a_language_model_is_examined_without_being_asked(tmp_path: Path) -> None:
    half = doctor(tmp_path, "--json", WORLDDB_LLM_PROVIDER="openai")
    assert (half.code, verdicts(half)["language model"]) == (1, "fail")
    asked = doctor(tmp_path, "--json", WORLDDB_EXTRACTOR="llm")
    assert verdicts(asked)["language model"] == "fail"
    key = "sk-very-secret"
    env = {"WORLDDB_LLM_PROVIDER": "openai", "WORLDDB_LLM_MODEL": "gpt", "WORLDDB_LLM_API_KEY": key}
    whole = doctor(tmp_path, "--json", **env)
    assert seen(whole, "language model")["seen"] == "openai gpt, with a key; not called"
    assert key not in whole.out


def test_secrets_that_others_can_read_are_a_warning(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("token = 't'")
    config.chmod(0o644)
    done = doctor(tmp_path, "--json", WORLDDB_CONFIG=str(config))
    assert verdicts(done)["config"] == "warn"
    assert seen(done, "config")["advice"] == f"chmod 600 {config}"
    config.chmod(0o600)
    assert verdicts(doctor(tmp_path, "--json", WORLDDB_CONFIG=str(config)))["config"] == "ok"


def test_clients_are_asked_whether_they_point_to_something_that_is_there(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert in_process("setup", "cursor", "--write", env=env).code == 0
    good = doctor(tmp_path, "--json")
    assert verdicts(good)["Cursor"] == "ok"
    assert "clients" not in verdicts(good)
    path = tmp_path / ".cursor" / "mcp.json"
    entry = json.loads(path.read_text())["mcpServers"]["worlddb"]

    def with_entry(changed: Any) -> dict[str, Any]:
        path.write_text(json.dumps({"mcpServers": {"worlddb": changed}}))
        return seen(doctor(tmp_path, "--json"), "Cursor")

    gone = with_entry(entry | {"command": "/no/such/worlddb"})
    assert (gone["verdict"], gone["advice"]) == ("fail", "worlddb setup cursor --write")
    lost = with_entry(entry | {"env": {"WORLDDB_PATH": "/no/such/folder/m.db"}})
    assert lost["verdict"] == "fail"
    named = with_entry(entry | {"args": ["mcp", "--db", str(tmp_path / "new.db")]})
    assert named["verdict"] == "ok"
    assert with_entry(3)["verdict"] == "fail"
    path.write_text("{ broken")
    broken = doctor(tmp_path, "--json")
    assert (broken.code, verdicts(broken)["Cursor"]) == (1, "fail")
    assert path.read_text() == "{ broken"


@pytest.mark.parametrize("answers", [True, False])
def test_a_server_that_a_client_names_is_called(answers: bool, tmp_path: Path) -> None:
    with serving(in_turn(Answer(b"{}"))) as server:
        url = server.url if answers else "http://127.0.0.1:9"
        env = {"HOME": str(tmp_path)}
        assert in_process("setup", "cursor", "--http", url, "--write", env=env).code == 0
        done = doctor(tmp_path, "--json", http_proxy="http://127.0.0.1:9")
    assert verdicts(done)["Cursor"] == ("ok" if answers else "warn")
    assert done.code == 0
    asked = ["/v1/scopes?limit=1"] if answers else []
    assert [request.path for request in server.seen] == asked


def test_a_server_that_does_not_let_the_client_in_is_told(tmp_path: Path) -> None:
    secret = "a-token-of-sufficient-length"
    with Process(tmp_path / "served.db", env={"WORLDDB_TOKEN": secret}) as process:
        tokens = ((secret, "ok"), ("a-wrong-one", "fail"), ("", "fail"))
        for number, (token, verdict) in enumerate(tokens):
            home = tmp_path / f"home {number}"
            home.mkdir()
            env = {"HOME": str(home)} | ({"WORLDDB_TOKEN": token} if token else {})
            url = process.told["url"]
            assert in_process("setup", "cursor", "--http", url, "--write", env=env).code == 0
            done = doctor(home, "--json")
            [found] = [one for one in done.data["findings"] if one["part"] == "Cursor"]
            assert found["verdict"] == verdict
            assert secret not in done.out
            if verdict == "fail":
                assert "token" in found["seen"]
                assert "WORLDDB_TOKEN" in found["advice"]


def test_hooks_without_tools_are_told_and_are_no_warning(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    done = in_process("setup", "cursor", "--hooks", "--write", env=env)
    assert "worlddb setup cursor --write" in done.err
    found = doctor(tmp_path, "--json")
    assert verdicts(found)["clients"] == "ok"
    assert "hooks are set" in seen(found, "clients")["seen"]
