"""Files: a tree of folders with every version, one commit for each change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import worlddb
from worlddb import ConflictError, InvalidInputError, Memory, NotFoundError, RejectedError, WorldDB
from worlddb.files.versioned_files import Files


@pytest.fixture(params=["file", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WorldDB]:
    ticks = count(1_800_000_000_000_000, 1_000_000)
    path = tmp_path / "f.db" if request.param == "file" else ":memory:"
    with worlddb.open(path, embedder="none", clock=lambda: next(ticks)) as made:
        yield made


@pytest.fixture
def files(db: WorldDB) -> Files:
    return db.files()


def paths(files: Files, path: str = "/", depth: int | None = None) -> list[str]:
    return [one.path for one in files.list(path, depth=depth)]


def test_what_is_written_is_read_and_each_change_is_one_commit(db: WorldDB, files: Files) -> None:
    before = len(db.log())
    made = files.write("/notes/today.md", "tea at four\n", metadata={"by": "ada"})
    assert made.created
    assert made.commit is not None
    assert made.commit.seq == db.log(newest_first=True)[0].seq
    assert len(db.log()) == before + 1
    found = files.read("notes//today.md")
    assert (found.path, found.text, found.version) == (
        "/notes/today.md",
        "tea at four\n",
        made.version,
    )
    assert dict(found.metadata) == {"by": "ada"}
    again = files.write("/notes/today.md", "tea at four\n", metadata={"by": "ada"})
    assert (again.created, again.version, again.commit) == (False, made.version, None)
    assert db.check() == []


def test_lists_have_files_and_folders_by_path_and_depth(files: Files) -> None:
    assert files.list() == []
    for path in ("/b.md", "/a/x.md", "/a/c/deep.md"):
        files.write(path, path)
    files.make_folder("/empty/inner")
    assert paths(files, depth=1) == ["/a", "/b.md", "/empty"]
    assert paths(files) == [
        *("/a", "/a/c", "/a/c/deep.md", "/a/x.md", "/b.md", "/empty", "/empty/inner"),
    ]
    entry = files.list("/b.md")[0]
    assert (entry.kind, entry.bytes, entry.modified) == ("file", 5, files.read("/b.md").modified)
    assert files.exists("/a/c")
    assert not files.exists("/a/d")


def test_every_old_version_can_be_read(files: Files) -> None:
    versions = [files.write("/n.md", f"text {number}").version for number in range(3)]
    assert [one.version for one in files.history("/n.md")] == versions[::-1]
    for number, version in enumerate(versions):
        assert version is not None
        assert files.read("/n.md", version=version).text == f"text {number}"
        assert files.read("/n.md", version=str(version)[:12]).text == f"text {number}"
    first = files.history("/n.md")[-1]
    assert files.read("/n.md", as_of=first.modified).text == "text 0"
    files.delete("/n.md")
    assert paths(files) == []
    assert files.read("/n.md", version=versions[1] or "").text == "text 1"
    assert files.read("/n.md", as_of=first.modified).text == "text 0"
    assert [one.path for one in files.list("/", as_of=first.modified)] == ["/n.md"]
    files.write("/n.md", "anew")
    assert len(files.history("/n.md")) == 4
    with pytest.raises(NotFoundError, match="no version"):
        files.read("/n.md", version="0" * 64)


def test_a_write_on_another_version_than_expected_is_refused(files: Files) -> None:
    first = files.write("/n.md", "one", expected=None).version
    with pytest.raises(ConflictError, match="exists already"):
        files.write("/n.md", "two", expected=None)
    second = files.write("/n.md", "two", expected=first).version
    told = f"has version {second}"
    with pytest.raises(ConflictError, match=told):
        files.write("/n.md", "three", expected=first)
    with pytest.raises(ConflictError, match=told):
        files.edit("/n.md", "two", "three", expected=first)
    with pytest.raises(ConflictError, match=told):
        files.delete("/n.md", expected=first)
    files.delete("/n.md", expected=second)
    with pytest.raises(ConflictError, match="does not exist any more"):
        files.write("/n.md", "three", expected=second)


def test_of_writers_who_read_the_same_version_one_wins(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "f.db", embedder="none") as db:
        files = db.files()
        read = files.write("/n.md", "0").version
        won: list[int] = []

        def write(number: int) -> None:
            try:
                files.write("/n.md", f"by {number}", expected=read)
            except ConflictError:
                return
            won.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [f"by {number}" for number in won] == [files.read("/n.md").text]


def test_edits_replace_a_text_that_occurs_once(files: Files) -> None:
    files.write("/n.md", "a b a")
    assert files.edit("/n.md", "b", "c").version == files.read("/n.md").version
    with pytest.raises(ConflictError, match="occurs 2 times"):
        files.edit("/n.md", "a", "x")
    files.edit("/n.md", "a", "x", every=True)
    assert files.read("/n.md").text == "x c x"
    with pytest.raises(NotFoundError, match="not in the file"):
        files.edit("/n.md", "a", "x")
    with pytest.raises(InvalidInputError):
        files.edit("/n.md", "", "x")


def test_a_move_takes_the_versions_and_whole_folders_along(db: WorldDB, files: Files) -> None:
    old = files.write("/a/n.md", "one").version
    files.write("/a/n.md", "two")
    files.write("/a/in/deep.md", "deep")
    files.make_folder("/a/empty")
    files.move("/a", "/b/c")
    assert paths(files) == ["/b", "/b/c", "/b/c/empty", "/b/c/in", "/b/c/in/deep.md", "/b/c/n.md"]
    assert [one.path for one in files.history("/b/c/n.md")] == ["/b/c/n.md", "/a/n.md", "/a/n.md"]
    assert files.read("/b/c/n.md", version=old or "").text == "one"
    files.write("/other.md", "other")
    with pytest.raises(ConflictError, match="exists already"):
        files.move("/b/c/n.md", "/other.md")
    files.move("/b/c/n.md", "/other.md", replace=True)
    assert files.read("/other.md").text == "two"
    with pytest.raises(InvalidInputError, match="lies inside"):
        files.move("/b", "/b/c/d")
    assert db.check() == []


def test_a_folder_exists_as_long_as_something_lives_in_it(db: WorldDB, files: Files) -> None:
    version = files.write("/n/in/a.md", "one").version
    files.write("/n/b.md", "two")
    then = files.history("/n/b.md")[0].modified
    files.delete("/n/in/a.md")
    assert paths(files) == ["/n", "/n/b.md"]
    files.move("/n/b.md", "/m/b.md")
    assert paths(files) == ["/m", "/m/b.md"]
    assert paths(files, depth=1) == ["/m"]
    for call in (files.list, files.delete):
        with pytest.raises(NotFoundError, match="there is no /n;"):
            call("/n")
    assert not files.exists("/n")
    assert [one.path for one in files.list("/n", as_of=then)] == ["/n/b.md", "/n/in"]
    assert files.read("/n/in/a.md", version=version or "").text == "one"
    files.write("/n/in/a.md", "anew")
    assert paths(files) == ["/m", "/m/b.md", "/n", "/n/in", "/n/in/a.md"]
    assert [one.ended is None for one in files.history("/n/in/a.md")] == [True, False]
    files.delete("/n/in/a.md")
    files.write("/n", "a file where a folder was")
    assert paths(files) == ["/m", "/m/b.md", "/n"]
    with pytest.raises(ConflictError, match="/n is a file"):
        files.write("/n/b.md", "three")
    assert db.check() == []


def test_an_empty_folder_exists_if_it_was_made_so(db: WorldDB, files: Files) -> None:
    files.make_folder("/a/empty")
    files.write("/a/n.md", "one")
    then = files.history("/a/n.md")[0].modified
    files.delete("/a/n.md")
    assert paths(files) == ["/a", "/a/empty"]
    files.write("/a/empty/n.md", "one")
    files.delete("/a/empty/n.md")
    assert paths(files) == []
    assert [one.path for one in files.list(depth=None, as_of=then)] == ["/a", "/a/empty", "/a/n.md"]
    files.make_folder("/a")
    assert paths(files) == ["/a"]
    assert len(files.history("/a/n.md")) == 1
    with files.changes() as changes:
        changes.tx.create_node(type="Item", content="an item", parent=changes.folder(["log"]))
        changes.write("/log/n.md", "one")
    files.delete("/log/n.md")
    assert files.exists("/log")
    assert db.check() == []


def test_a_deletion_that_is_undone_is_found_beside_later_files(db: WorldDB, files: Files) -> None:
    files.write("/n/a.md", "one")
    gone = files.delete("/n/a.md").commit
    assert gone is not None
    files.write("/n/b.md", "two")
    db.undo(gone.seq)
    assert paths(files) == ["/n", "/n/a.md", "/n/b.md"]
    assert [files.read(path).text for path in ("/n/a.md", "/n/b.md")] == ["one", "two"]


def test_several_changes_are_one_commit_or_nothing(db: WorldDB, files: Files) -> None:
    commits = len(db.log())
    with files.changes() as changes:
        changes.write("/a.md", "a")
        changes.write("/a.md", "a again")
        changes.write("/b.md", "b")
        changes.delete("/b.md")
        assert changes.read("/a.md").text == "a again"
    assert len(db.log()) == commits + 1
    assert paths(files) == ["/a.md"]

    def failing() -> None:
        with files.changes() as changes:
            changes.write("/c.md", "c")
            changes.delete("/nothing")

    with pytest.raises(NotFoundError):
        failing()
    assert paths(files) == ["/a.md"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.md", ["/a.md", "/n/b.md", "/n/m/c.md"]),
        ("/*.md", ["/a.md"]),
        ("/n/*", ["/n/b.md", "/n/d.txt"]),
        ("/n/**", ["/n/b.md", "/n/d.txt", "/n/m/c.md"]),
        ("/**/c.*", ["/n/m/c.md"]),
        ("/?/b.md", ["/n/b.md"]),
        ("/n/[!b]*", ["/n/d.txt"]),
        ("nothing", []),
    ],
)
def test_globs(files: Files, pattern: str, expected: list[str]) -> None:
    for path in ("/a.md", "/n/b.md", "/n/d.txt", "/n/m/c.md"):
        files.write(path, "x")
    assert sorted(files.glob(pattern)) == expected


def test_grep_finds_lines(files: Files) -> None:
    files.write("/a.md", "Tea at four\nCoffee (black)\n")
    files.write("/n/b.txt", "more tea\n")
    files.write("/gone.md", "tea")
    files.delete("/gone.md")
    assert [(one.path, one.line) for one in files.grep("tea", ignore_case=True)] == [
        ("/a.md", 1),
        ("/n/b.txt", 1),
    ]
    assert [one.text for one in files.grep("(black)", literal=True)] == ["Coffee (black)"]
    assert files.grep("tea", glob="*.md") == []
    assert [one.path for one in files.grep("t", path="/n")] == ["/n/b.txt"]
    assert len(files.grep(".", limit=2)) == 2
    with pytest.raises(InvalidInputError, match="pattern"):
        files.grep("(")


@pytest.mark.parametrize("path", ["/../x", "/a/./b", "/a\nb", "/" + "x" * 256, "/\0", "", "/"])
def test_bad_paths_are_refused(files: Files, path: str) -> None:
    with pytest.raises(InvalidInputError):
        files.write(path, "x")


def test_folders_and_files_are_told_apart(files: Files) -> None:
    files.write("/a/n.md", "x")
    with pytest.raises(ConflictError, match="folder"):
        files.write("/a", "x")
    with pytest.raises(ConflictError, match="folder"):
        files.read("/a")
    with pytest.raises(ConflictError, match="is a file"):
        files.write("/a/n.md/x", "x")
    for path in ("/nothing", "/a/nothing", "/a/n.md/x"):
        with pytest.raises(NotFoundError):
            files.read(path)
    with pytest.raises(NotFoundError, match="no file ever"):
        files.history("/nothing")
    files.write("/void.md", "")
    assert files.read("/void.md").text == ""


def test_worlds_have_trees_of_their_own(db: WorldDB) -> None:
    with db.transaction() as tx:
        worlds = [tx.create_node(type="Topic", name=name).id for name in ("one", "two")]
    for world in worlds:
        db.files(world).write("/n.md", str(world))
    assert [db.files(world).read("/n.md").text for world in worlds] == list(map(str, worlds))
    assert db.files().list() == []


def test_the_files_of_a_scope_stay_in_it_and_recall_finds_them(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", user_id="ada") as memory:
        memory.files.write("/recipes/soup.md", "Pumpkin soup needs ginger.")
        memory.files_of(user_id="bob").write("/secret.md", "Bob likes pumpkin.")
        hits = memory.recall("pumpkin").hits
        assert [hit.node.content for hit in hits] == ["Pumpkin soup needs ginger."]
        assert hits[0].node.name == "/recipes/soup.md"
        assert memory.list().memories == ()
        memory.files.write("/recipes/soup.md", "Pumpkin soup needs chili.")
        assert [hit.node.content for hit in memory.recall("pumpkin soup")] == [
            "Pumpkin soup needs chili."
        ]
        bob = memory.bound(user_id="bob")
        assert [one.path for one in bob.files.list()] == ["/secret.md"]
        with pytest.raises(RejectedError):
            bob.files_of(user_id="ada")
        with pytest.raises(InvalidInputError, match="one scope"):
            memory.files_of(app_id="shop")
        memory.purge_scope(user_id="ada", confirm=True)
        assert memory.files.list() == []
        memory.files.write("/new.md", "new")
        assert [one.path for one in memory.files.list()] == ["/new.md"]
        assert memory.check()


def test_a_path_has_a_bounded_depth(files: Files) -> None:
    deep = "/" + "a/" * 100 + "b"
    files.write(deep, "deep")
    with pytest.raises(InvalidInputError, match="more than 100 folders deep"):
        files.write("/" + "a/" * 101 + "b", "too deep")
    with pytest.raises(InvalidInputError, match="more than 100 folders deep"):
        files.move(deep, "/" + "c/" * 101 + "b")
    assert files.read(deep).text == "deep"
