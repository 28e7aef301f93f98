"""Stopping: a run that was killed goes on, pays nothing twice, and comes to the same figures."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

from faces.command import COMMAND, environment, in_process, worlddb
from models.server import Answer, Fault, Seen, serving
from worlddb.evaluate.run_folder import append_line, code_digest, package_digest, read_lines

from .eval_command import asked, options, records, timeless
from .models import model, role_of, roles_asked
from .samples import TOPICS, locomo, longmemeval, save

PATIENCE_S = 60


def started(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(),
    )


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(4))
    stuck = threading.Event()
    dead = threading.Event()

    def sticks(seen: Seen) -> Answer:
        if role_of(seen) == "answerer" and "sailing teacher?" in seen.said and not dead.is_set():
            stuck.set()
            return Fault(late=True)
        return model(seen)

    out = tmp_path / "run"
    with serving(sticks) as server:
        given = options(server, out, mode="both")
        process = started("eval", "longmemeval", "--data", data, *given, "--workers", 1)
        assert stuck.wait(PATIENCE_S)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        before = records(out)
        assert [line["id"] for line in before] == ["question-0", "question-1"]
        # What a kill in the middle of a line leaves.
        for name in ("questions.jsonl", "calls.jsonl"):
            with (out / name).open("ab") as file:
                file.write(b'{"id": "question-2", "ques')
        dead.set()
        server.seen.clear()
        done = asked("longmemeval", data, server, out, mode="both")
        assert done.code == 0, done.err
        assert roles_asked(server.seen) == {"answerer": 3, "judge": 3}
        whole = tmp_path / "whole"
        assert asked("longmemeval", data, server, whole, mode="both").code == 0
    assert records(out)[:2] == before, "with the times of the first run: not done again"
    assert timeless(records(out)) == timeless(records(whole))
    assert len(list(read_lines(out / "calls.jsonl"))) == len(TOPICS) + 5 + 5


def test_a_conversation_that_was_half_asked_is_finished(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", locomo())
    out = tmp_path / "run"
    with serving(model) as server:
        asked("locomo", data, server, out, "--limit", 2)
        assert roles_asked(server.seen)["answerer"] == 2
        asked("locomo", data, server, out)
        assert roles_asked(server.seen) == {"extractor": 2, "answerer": 5, "judge": 5}
        server.seen.clear()
        again = asked("locomo", data, server, out, "--json")
        assert server.seen == []
    assert again.data["answers"]["all"]["n"] == 5
    assert [line["id"] for line in records(out)] == [f"conv-1:{n}" for n in (0, 1, 2, 3, 5)]


def test_other_data_or_settings_need_another_folder(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(2))
    out = tmp_path / "run"
    common = ("eval", "retrieval", "--embedder", "hash", "--out", out)
    assert worlddb(*common, "--data", data).code == 0
    before = (out / "questions.jsonl").read_bytes()
    other = worlddb(*common, "--data", data, "--plain")
    assert other.code == 4
    assert "holds a run with other settings (weighed was True, now False)" in other.err
    save(data, longmemeval(3))
    assert "sha256 was" in worlddb(*common, "--data", data).err
    assert (out / "questions.jsonl").read_bytes() == before


def test_figures_of_other_code_need_another_folder(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(2))
    out = tmp_path / "run"
    common = ("eval", "retrieval", "--embedder", "hash", "--data", data, "--out", out)
    assert in_process(*common, "--limit", 1).code == 0
    told = json.loads((out / "run.json").read_text())
    assert told["code"] == code_digest()
    assert told["questions"].startswith("the first 1 of the file")
    (out / "run.json").write_text(json.dumps(told | {"code": "0" * 64}))
    before = (out / "questions.jsonl").read_bytes()
    other = in_process(*common)
    assert other.code == 4
    assert "another state of WorldDB's code made" in other.err
    assert "choose another --out" in other.err
    assert (out / "questions.jsonl").read_bytes() == before
    del told["code"]
    (out / "run.json").write_text(json.dumps(told))
    assert in_process(*common).code == 4, "nothing says by which code"


def test_the_digest_of_the_code_is_of_what_decides_figures(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "read").mkdir(parents=True)
    (package / "faces").mkdir()
    (package / "read" / "weigh.py").write_text("WEIGHT = 1\n")
    (package / "tokens.npy").write_bytes(b"1")
    first = package_digest(package)
    (package / "faces" / "page.py").write_text("TITLE = 1\n")
    (package / "read" / "weigh.pyc").write_bytes(b"made of it")
    assert package_digest(package) == first
    found = {first}
    (package / "tokens.npy").write_bytes(b"2")
    found.add(package_digest(package))
    (package / "read" / "weigh.py").write_text("WEIGHT = 2\n")
    found.add(package_digest(package))
    (package / "read" / "weigh.py").rename(package / "read" / "fuse.py")
    found.add(package_digest(package))
    assert len(found) == 4


def test_extending_a_sample_asks_nothing_again(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(6))
    out = tmp_path / "run"
    common = ("eval", "retrieval", "--embedder", "hash", "--data", data, "--out", out)
    assert in_process(*common, "--sample", 3).code == 0
    small = records(out)
    for name in ("report.md", "report.html", "run.json"):
        assert "a sample of 3 of the 7 of the file" in (out / name).read_text()
    shown = in_process(*common, "--sample", 4)
    assert "questions: a sample of 4 of the 7 of the file" in shown.out
    large = records(out)
    assert len(large) == 4
    assert [line for line in large if line in small] == small, "with their times"
    assert in_process(*common).code == 0
    assert "all 7 of the file" in (out / "run.json").read_text()
    assert (out / "report.md").read_text().startswith("# longmemeval: retrieval\n")


def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(4))
    reached = threading.Event()

    def sticks(_: Seen) -> Answer:
        reached.set()
        return Fault(late=True)

    with serving(sticks) as server:
        process = started(
            *("eval", "retrieval", "--data", data, "--workers", 2, "--yes"),
            *("--embedder", f"{server.url}#m?dimensions=8"),
        )
        assert reached.wait(PATIENCE_S), process.communicate(timeout=PATIENCE_S)
        process.kill()
        # The workers hold the same pipe: it ends when the last of them has.
        process.communicate(timeout=PATIENCE_S)


def test_a_file_of_lines_loses_only_its_broken_end(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert list(read_lines(path)) == []
    append_line(path, {"a": "ä\n"})
    append_line(path, {"a": 2})
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"a": 3')
    assert list(read_lines(path)) == [{"a": "ä\n"}, {"a": 2}]
    assert path.read_bytes() == whole
    append_line(path, {"a": 4})
    assert [line["a"] for line in read_lines(path)] == ["ä\n", 2, 4]
