"""The page on grants: its commands run, and its requests are answered."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from faces.command import in_process
from faces.http.serving import serving, token
from worlddb import Memory
from worlddb.faces.http.access_tokens import make_access

PAGE = Path(__file__).parents[2] / "docs" / "sharing.md"
COMMANDS, REQUESTS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS.splitlines():
        program, *arguments = shlex.split(line)
        if program == "export":
            monkeypatch.setenv(*arguments[0].split("="))
            continue
        done = in_process(*arguments)
        assert (program, done.code) == ("worlddb", 0), done.err
    assert done.rows[0].split()[1:4] == ["user:ada", "read", "user:bob"]


def test_the_requests_are_answered() -> None:
    tokens = [token(name, bounds={"user_id": (name.lower(),)}) for name in ("ADA", "BOB")]
    with (
        Memory(":memory:", embedder="none", recluster="off") as memory,
        serving(memory, make_access(host="127.0.0.1", tokens=tokens)) as site,
    ):
        memory.write("The spare key is at Tom Berg's.", user_id="bob")
        answers = []
        for line in REQUESTS.splitlines():
            _, _, header, *body, address = shlex.split(line)
            caller, path = site.as_(header.rpartition("$")[2]), address.partition(":8765")[2]
            answers.append(caller.post(path, **json.loads(body[1])) if body else caller.get(path))
            assert answers[-1].status == 200, answers[-1].body
        assert [hit["node"]["content"] for hit in answers[1].data["hits"]] == [
            "The spare key is at Tom Berg's."
        ]
        assert answers[2].data["grants"][0]["right"] == "read"
