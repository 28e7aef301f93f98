"""export and import: everything out, and everything in again."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

import worlddb as engine

from .command import COMMAND, environment, in_process
from .samples import Sample


def text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def assert_same(sample: Sample, path: Path) -> None:
    """Assert that the store at `path` has every id, both clocks and every hash of the sample."""
    with engine.open(sample.path, create=False) as one, engine.open(path, create=False) as other:
        assert other.root_state == one.root_state
        assert other.log() == one.log()
        assert other.diff(0, 4) == one.diff(0, 4)
        assert other.proposals(None) == one.proposals(None)
        assert other.conflicts(include_settled=True) == one.conflicts(include_settled=True)
        for commit in one.log()[1:]:
            as_of = engine.AsOf(known=commit.time)
            for node in one.children(as_of=as_of, include_superseded=True):
                assert other.get(node.id, as_of=as_of) == node
        assert list(other.export()) == list(one.export())
        assert other.check() == []


def test_export_goes_to_stdout_as_json_lines(sample: Sample) -> None:
    for flags in ((), ("-",), ("--json",)):
        done = in_process("export", *flags, "--db", sample.path)
        assert (done.code, done.err) == (0, "")
        assert done.out.encode() == text_of(sample.lines)
    assert all(isinstance(json.loads(line), dict) for line in sample.lines)


def test_an_export_piped_into_an_import_keeps_everything(sample: Sample, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    out = subprocess.Popen(
        [*COMMAND, "export", "--db", str(sample.path)], stdout=subprocess.PIPE, env=environment()
    )
    back = subprocess.run(
        [*COMMAND, "import", "-", "--json", "--db", str(copy)],
        stdin=out.stdout,
        capture_output=True,
        env=environment(),
        check=True,
        timeout=60,
    )
    assert out.stdout is not None
    out.stdout.close()
    assert out.wait(60) == 0
    assert json.loads(back.stdout) == {
        "path": str(copy),
        "added": 4,
        "skipped": 0,
        "commit": 4,
        "root_state": str(sample.root_state),
    }
    assert_same(sample, copy)


@pytest.mark.parametrize("name", ["export.jsonl", "export.jsonl.gz"])
def test_an_export_in_a_file_comes_back_whole(sample: Sample, tmp_path: Path, name: str) -> None:
    file, copy = tmp_path / name, tmp_path / "copy.db"
    done = in_process("export", file, "--json", "--db", sample.path)
    lines = len(sample.lines)
    size = file.stat().st_size
    assert done.data == {"path": str(file), "commits": 5, "lines": lines, "bytes": size}
    unpacked = gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()
    assert unpacked == text_of(sample.lines)
    assert in_process("import", file, "--db", copy).code == 0
    assert_same(sample, copy)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", name]


def test_equal_stores_give_equal_compressed_exports(sample: Sample, tmp_path: Path) -> None:
    files = [tmp_path / "a.jsonl.gz", tmp_path / "b.gz"]
    for file in files:
        assert in_process("export", file, "--db", sample.path).code == 0
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_compressed_export_is_recognised_on_stdin(sample: Sample, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    packed = gzip.compress(text_of(sample.lines))
    assert in_process("import", "-", "--db", copy, stdin=packed).code == 0
    assert_same(sample, copy)


def test_export_replaces_a_file_only_by_force(sample: Sample, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text("precious")
    done = in_process("export", file, "--db", sample.path)
    assert (done.code, done.out) == (8, "")
    assert "exists already" in done.err
    assert file.read_text() == "precious"
    assert in_process("export", file, "--force", "--db", sample.path).code == 0
    assert file.read_bytes() == text_of(sample.lines)
    assert [path.name for path in tmp_path.iterdir()] == ["export.jsonl"]


def test_export_by_force_follows_a_link_and_never_replaces_a_device(
    sample: Sample, tmp_path: Path
) -> None:
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    link = tmp_path / "link.jsonl"
    assert in_process("export", link, "--force", "--db", sample.path).code == 0
    assert link.is_symlink()
    assert (tmp_path / "real.jsonl").read_bytes() == text_of(sample.lines)
    (tmp_path / "null").symlink_to("/dev/null")
    done = in_process("export", tmp_path / "null", "--force", "--db", sample.path)
    assert done.code == 8
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("command", [("export", "--force"), ("backup",)])
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal", "-vectors"])
def test_no_command_writes_over_the_store_that_it_reads(
    own: Sample, command: tuple[str, ...], end: str
) -> None:
    before = own.path.read_bytes()
    folder = own.path.parent
    (folder / "by").mkdir()
    (folder / "link").symlink_to(f"{own.path}{end}")
    (folder / "linked.db").symlink_to(own.path)
    roundabout = folder / "by" / ".." / f"own.db{end}"
    for store in (own.path, folder / "linked.db"):
        for target in (f"{own.path}{end}", roundabout, folder / "link"):
            done = in_process(*command, target, "--db", store)
            assert (done.code, done.out) == (8, "")
            assert "is the store itself or belongs to it; choose another path" in done.err
    assert own.path.read_bytes() == before
    assert sorted(one.name for one in folder.iterdir()) == ["by", "link", "linked.db", "own.db"]


def test_an_export_does_not_replace_another_name_of_the_store(own: Sample) -> None:
    (own.path.parent / "second.db").hardlink_to(own.path)
    done = in_process("export", "second.db", "--force", "--db", own.path, cwd=own.path.parent)
    assert (done.code, done.out) == (8, "")
    assert "has a second name (a hard link)" in done.err, "no such store is opened at all"
    assert own.path.stat().st_nlink == 2


def test_an_export_of_a_damaged_store_leaves_the_old_export_in_place(
    own: Sample, tmp_path: Path
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text("yesterday's")
    data = own.path.read_bytes()
    own.path.write_bytes(data[:16384] + bytes(len(data) - 16384))
    done = in_process("export", file, "--force", "--db", own.path)
    assert done.code in (6, 7)
    assert file.read_text() == "yesterday's"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_an_import_can_be_repeated_and_continued(sample: Sample, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    third = next(at for at, line in enumerate(sample.lines) if line.startswith('{"commit":3'))
    first_part = text_of(sample.lines[:third])
    in_process("import", "-", "--db", copy, stdin=first_part)
    done = in_process("import", "-", "--db", copy, stdin=text_of(sample.lines))
    assert done.code == 0
    assert done.out.startswith(f"added 2 commits to {copy}, 2 were there already; ")
    again = in_process("import", "-", "--json", "--db", copy, stdin=text_of(sample.lines)).data
    assert (again["added"], again["skipped"]) == (0, 4)
    assert_same(sample, copy)


def test_a_copy_is_brought_up_to_date_by_the_commits_it_misses(
    sample: Sample, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    third = next(at for at, line in enumerate(sample.lines) if line.startswith('{"commit":3'))
    in_process("import", "-", "--db", copy, stdin=text_of(sample.lines[:third]))
    rest = in_process("export", "--after", 2, "--db", sample.path).out
    assert len(rest.splitlines()) == 1 + len(sample.lines) - third
    assert in_process("import", "-", "--db", copy, stdin=rest.encode()).code == 0
    assert_same(sample, copy)
    gap = in_process("import", "-", "--db", tmp_path / "new.db", stdin=rest.encode())
    assert gap.code == 4
    assert "commit 1 is missing" in gap.err


def test_an_import_into_a_store_with_another_history_is_a_conflict(
    sample: Sample, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with engine.open(other) as db, db.transaction(actor="eve") as tx:
        tx.create_node(type="Fact", content="another past")
    before = in_process("export", "--db", other).out
    done = in_process("import", "-", "--db", other, stdin=text_of(sample.lines))
    assert (done.code, done.out) == (4, "")
    assert in_process("export", "--db", other).out == before


def test_the_data_directory_is_made_for_the_first_import(sample: Sample, tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path / "home")}
    done = in_process("import", "-", "--json", stdin=text_of(sample.lines), env=env)
    assert done.code == 0
    made = Path(done.data["path"])
    assert made.is_relative_to(tmp_path)
    assert made.parent.stat().st_mode & 0o777 == 0o700
    assert_same(sample, made)
