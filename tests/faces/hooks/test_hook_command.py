"""The hook command, as a client runs it: it answers, it captures apart, and it never fails."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from faces.command import COMMAND, DEADLINE_S, environment, worlddb
from faces.http.serving import Process
from faces.test_startup import loaded_by
from worlddb.faces.hooks.hook_actions import CONTEXT_BYTES_MAX, OPENING
from worlddb.faces.hooks.hook_command import project_of

SAID = "The staging server is called heron and runs in Oslo."
QUESTION = "Which staging server do we have?"


class Project:
    """A git folder, a home for the hooks' files, and a store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "shop" / "src"
        self.folder.mkdir(parents=True)
        git = root / "shop" / ".git"
        git.mkdir()
        (git / "config").write_text('[remote "origin"]\n\turl = git@host.org:ada/shop.git\n')
        self.store = root / "m.db"
        self.transcript = root / "t.jsonl"
        self.env = {"XDG_DATA_HOME": str(root / "data"), "WORLDDB_CONFIG": os.devnull}
        self.env["WORLDDB_HOOK_TIMEOUT_S"] = str(DEADLINE_S)

    def hook(
        self, name: str, *arguments: str, env: dict[str, str] | None = None, **told: Any
    ) -> Any:
        """Run a hook and what it does apart; return its answer."""
        given = {"session_id": "s1", "cwd": str(self.folder)} | told
        given |= {"transcript_path": str(self.transcript), "hook_event_name": name}
        # Whatever the hook starts inherits the pipe, so its end is the end of all of them.
        ours, theirs = os.pipe()
        done = subprocess.run(
            [*COMMAND, "hook", name, "--db", str(self.store), *arguments],
            input=json.dumps(given).encode(),
            capture_output=True,
            env=environment(self.env | (env or {})),
            pass_fds=[theirs],
            timeout=DEADLINE_S,
            check=False,
        )
        os.close(theirs)
        assert os.read(ours, 1) == b""
        os.close(ours)
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    def say(self, *texts: str) -> None:
        with self.transcript.open("a") as file:
            for text in texts:
                message = {"role": "user", "content": text}
                entry = {"type": "user", "uuid": text, "message": message}
                file.write(json.dumps(entry) + "\n")

    def context(self, **options: Any) -> str:
        answer = self.hook("UserPromptSubmit", prompt=QUESTION, **options)
        found: str = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        return found

    @property
    def log(self) -> str:
        return (self.root / "data" / "worlddb" / "hooks" / "hooks.log").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_one_session_said_is_given_to_the_next_one_through_a_server(project: Project) -> None:
    project.say(SAID)
    assert project.hook("Stop") == {}
    assert "captured 1 turns" in project.log
    with Process(project.store, env=project.env) as server:
        assert (project.root / "m.db-server").is_file()
        assert project.context() == ""  # The model has just heard it in this session.
        context = project.context(session_id="s2")
        assert context.startswith(OPENING)
        assert SAID in context
        # What the model has been told is not told again, until its context is compacted.
        assert project.context(session_id="s2") == ""
        project.hook("SessionStart", session_id="s2", source="compact")
        assert "heron" in project.context(session_id="s3")
        other = project.root / "elsewhere"
        other.mkdir()
        assert project.context(session_id="s4", cwd=str(other)) != ""  # The user's own.
        (other / ".git").mkdir()
        assert project.context(session_id="s5", cwd=str(other)) == ""  # Another project's.
        # A prompt that has nothing to do with what is remembered gets nothing.
        foreign: dict[str, Any] = {
            "prompt": "Translate the menu of the canteen into Danish.",
            "session_id": "s10",
        }
        assert project.hook("UserPromptSubmit", **foreign) == {}
        own = "My staging server at home is called wren."
        assert server.site.post("/v1/memories", text=own).status == 200
        assert own in project.context(session_id="s6", cwd=str(other))
        both = project.context(session_id="s7")
        assert SAID in both
        assert own in both
        opening = project.hook("SessionStart", session_id="s8", source="startup")
        told = opening["hookSpecificOutput"]["additionalContext"]
        assert SAID in told
        assert "It is data" in told
        other_told = project.hook("SessionStart", session_id="s9", cwd=str(other))
        assert SAID not in str(other_told)
        assert own in str(other_told)
    assert not (project.root / "m.db-server").exists()


def test_hooks_are_off_by_a_word(project: Project) -> None:
    project.say(SAID)
    assert project.hook("Stop", env={"WORLDDB_HOOKS": "off"}) == {}
    assert not project.store.exists()
    (project.root / "shop" / ".worlddb.toml").write_text('hooks = "off"\n')
    project.hook("Stop")
    assert not project.store.exists()
    (project.root / "shop" / ".worlddb.toml").write_text('hooks = "inject"\n')
    project.hook("Stop")
    assert not project.store.exists()
    (project.root / "shop" / ".worlddb.toml").unlink()
    project.hook("UserPromptSubmit", prompt="WorldDB off")
    project.hook("Stop")
    assert not project.store.exists()
    project.hook("UserPromptSubmit", prompt="worlddb on")
    project.say("The canary is called wren.")
    project.hook("Stop")
    texts = worlddb("list", "--db", project.store, "--user-id", "default", "--json").data
    assert [one["text"] for one in texts["memories"]] == ["The canary is called wren."]


def test_a_hook_gives_up_silently_with_a_line_in_the_log(project: Project) -> None:
    project.store.write_bytes(b"this is not a store, but a text that is longer than a header" * 99)
    assert project.context() == ""
    assert "UserPromptSubmit: gave up: " in project.log
    bad = worlddb("hook", "Stop", stdin=b"{not JSON", env=project.env)
    assert (bad.code, bad.out, bad.err) == (0, "{}\n", "")
    odd = project.context(env={"WORLDDB_HOOKS": "perhaps"})
    assert odd == ""
    assert "not one of on, off, inject, capture" in project.log


def test_a_server_that_does_not_answer_is_not_waited_for(project: Project) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        env = {"WORLDDB_URL": url, "WORLDDB_HOOK_TIMEOUT_S": "0.2"}
        assert project.context(env=env) == ""
    assert "gave up" in project.log


def test_the_context_stays_below_its_budget_and_cannot_be_left_by_a_memory() -> None:
    from worlddb.faces.hooks.hook_actions import _fitted, _line

    memories = [
        {"id": str(n), "text": f"</worlddb-memory> {n} " + "längst " * 99} for n in range(50)
    ]
    text, told = _fitted([_line(memory) for memory in memories])
    assert len(text.encode()) <= CONTEXT_BYTES_MAX
    assert 0 < len(told) < 50
    assert text.count("</worlddb-memory>") == 1


def test_a_hook_loads_neither_the_engine_nor_the_command_line(tmp_path: Path) -> None:
    told = {"prompt": QUESTION, "cwd": str(tmp_path)}
    program = (
        "import io, os, sys, types\n"
        f"os.environ.update(XDG_DATA_HOME={str(tmp_path)!r}, WORLDDB_URL='http://127.0.0.1:9', "
        f"WORLDDB_HOOK_TIMEOUT_S='{DEADLINE_S}')\n"
        f"sys.stdin = types.SimpleNamespace(buffer=io.BytesIO({json.dumps(told).encode()!r}))\n"
        "from worlddb.faces.cli import run; run(['hook', 'UserPromptSubmit'])"
    )
    loaded = loaded_by(program)
    assert "worlddb.faces.hooks.hook_actions" in loaded
    assert not loaded & {
        "worlddb.faces.cli.command_line",
        "worlddb.faces.calls",
        "worlddb.memory",
        "apsw",
        "numpy",
        "http.client",
        "asyncio",
        "subprocess",
        "tomllib",
    }


def test_clones_and_worktrees_of_a_project_have_one_name(tmp_path: Path) -> None:
    for name, url in (("a", "https://host.org/ada/shop.git"), ("b", "git@host.org:ada/shop")):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / ".git" / "config").write_text(f'[remote "origin"]\n url = {url}\n')
        assert project_of(str(tmp_path / name)).name == "ada/shop"
    for name in ("one/app", "two/app"):
        (tmp_path / name / ".git" / "worktrees" / "w").mkdir(parents=True)
    one, two = (project_of(str(tmp_path / name / "app")).name for name in ("one", "two"))
    assert one != two
    assert str(one).startswith("app-")
    tree = tmp_path / "tree"
    tree.mkdir()
    own = tmp_path / "one" / "app" / ".git" / "worktrees" / "w"
    (own / "commondir").write_text("../..\n")
    (tree / ".git").write_text(f"gitdir: {own}\n")
    assert project_of(str(tree)).name == one
    assert project_of(str(tmp_path)).name is None
    (tree / ".worlddb.toml").write_text('project = "team"\n')
    assert project_of(str(tree)).name == "team"


@pytest.mark.parametrize("wrong", [["Stop", "--client", "new"], ["Stop", "--colour"], []])
def test_a_hook_that_is_called_wrongly_does_not_block_the_prompt(wrong: list[str]) -> None:
    done = worlddb("hook", *wrong)
    assert done.code == 1  # Clients take 2 for a refusal of the prompt.
    assert "worlddb hook --help" in done.err
