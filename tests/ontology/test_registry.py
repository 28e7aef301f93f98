"""Custom types: where they hold, what the store remembers, and life without their handler."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import worlddb
from ontology.handler_stage import Quiet, fact, facts, names, open_store, write
from worlddb import (
    Edge,
    EdgeDraft,
    Id,
    InvalidInputError,
    ProviderError,
    Query,
    WorldDB,
    WriteContext,
)


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


class Marks(Quiet):
    """A handler that leaves a node with its own mark."""

    def __init__(self, type_: str, mark: str) -> None:
        super().__init__(type_, lambda ctx, edge: ctx.create_node(type="Mark", name=mark))


def marks(db: WorldDB) -> list[str]:
    return [node.name for node in db.children() if node.type == "Mark"]


def nested(db: WorldDB) -> dict[str, Id]:
    """Make outer ⊃ middle ⊃ inner, each with two leaves, and two leaves beside them."""
    ids: dict[str, Id] = {}
    with db.transaction() as tx:
        parent = None
        for world in ("root", "outer", "middle", "inner"):
            if world != "root":
                parent = ids[world] = fact(tx, world, parent=parent)
            for leaf in "xy":
                ids[f"{world}.{leaf}"] = fact(tx, f"{world}.{leaf}", parent=parent)
    return ids


# -- where a registration holds --------------------------------------------------------------------


def test_an_unknown_type_is_refused_and_the_known_ones_are_named(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    with pytest.raises(InvalidInputError, match=r"unknown edge type 'likes'.*contains.*register"):
        write(db, "likes", a, b)
    with (
        pytest.raises(InvalidInputError, match="unknown edge type 'likes'"),
        db.transaction() as tx,
    ):
        tx.write_edges("likes", [EdgeDraft(source=a, target=b)])
    assert db.check() == []


def test_a_type_of_the_root_world_holds_everywhere(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology().register(Quiet("likes"))
    for world in ("root", "outer", "middle", "inner"):
        write(db, "likes", ids[f"{world}.x"], ids[f"{world}.y"])


def test_a_type_of_a_world_holds_inside_it_and_not_outside(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology(ids["middle"]).register(Quiet("likes"))
    for world in ("middle", "inner"):
        write(db, "likes", ids[f"{world}.x"], ids[f"{world}.y"])
        with db.transaction() as tx:
            drafts = [EdgeDraft(source=ids[f"{world}.y"], target=ids[f"{world}.x"])]
            assert tx.write_edges("likes", drafts) == 1
    write(db, "likes", ids["inner.x"], ids["root.x"])  # The source decides.
    for source in ("root.x", "outer.x", "outer", "middle"):
        with pytest.raises(InvalidInputError, match="unknown edge type 'likes'"):
            write(db, "likes", ids[source], ids["inner.x"])
        with pytest.raises(InvalidInputError, match="unknown edge type"), db.transaction() as tx:
            tx.write_edges("likes", [EdgeDraft(source=ids[source], target=ids["inner.x"])])
    assert db.check() == []


def test_the_innermost_registration_wins(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology().register(Marks("likes", "root"))
    db.ontology(ids["middle"]).register(Marks("likes", "middle"))
    db.ontology(ids["inner"]).register(Marks("likes", "inner"))
    for world in ("root", "outer", "middle", "inner"):
        write(db, "likes", ids[f"{world}.x"], ids[f"{world}.y"])
    assert marks(db) == ["root", "root", "middle", "inner"]


def test_one_batch_goes_to_the_handler_of_each_source(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology().register(Marks("likes", "root"))
    db.ontology(ids["middle"]).register(Marks("likes", "middle"))
    with db.transaction() as tx:
        drafts = [
            EdgeDraft(source=ids[f"{world}.x"], target=ids[f"{world}.y"])
            for world in ("root", "inner", "outer", "middle")
        ]
        assert tx.write_edges("likes", drafts) == 4
    assert sorted(marks(db)) == ["middle", "middle", "root", "root"]
    assert db.check() == []


def test_a_world_may_have_its_own_way_with_a_default_type(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology(ids["outer"]).register(Quiet("supersedes"))
    write(db, "supersedes", ids["inner.x"], ids["inner.y"])
    assert db.get(ids["inner.y"]).valid_to is None
    write(db, "supersedes", ids["root.x"], ids["root.y"])
    assert db.get(ids["root.y"]).valid_to is not None


def test_registering_again_replaces_the_handler(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    db.ontology().register(Marks("likes", "one"))
    write(db, "likes", a, b)
    commits = len(db.log())
    db.ontology().register(Marks("likes", "two"))
    assert len(db.log()) == commits  # Name and version are recorded already.
    write(db, "likes", a, c)
    assert marks(db) == ["one", "two"]


def test_deleting_runs_the_handler_of_the_world_the_edge_is_in(db: WorldDB) -> None:
    ids = nested(db)
    gone: list[str] = []
    db.ontology().register(Quiet("likes", on_delete=lambda ctx, edge: gone.append("root")))
    inner = Quiet("likes", on_delete=lambda ctx, edge: gone.append("inner"))
    db.ontology(ids["inner"]).register(inner)
    edges = [write(db, "likes", ids[f"{w}.x"], ids[f"{w}.y"]) for w in ("outer", "inner")]
    with db.transaction() as tx:
        for edge in edges:
            tx.delete_edge(edge.id)
    assert gone == ["root", "inner"]


# -- reading ---------------------------------------------------------------------------------------


class Rewriter(Quiet):
    """A handler that lets one node be read where it holds."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Read one."""
        return replace(query, limit=1)


def test_a_custom_type_rewrites_queries_of_its_world_only(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology(ids["middle"]).register(Rewriter("likes"))
    assert len(db.query().in_world(ids["middle"]).execute()) == 1
    assert len(db.query().in_world(ids["inner"]).execute()) == 1
    assert len(db.query().in_world(ids["outer"]).execute()) > 1
    assert len(db.query().execute()) > 1


def test_a_custom_type_that_pierces_leads_out_of_the_world(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology(ids["outer"]).register(Quiet("cites", pierces=True))
    db.ontology(ids["outer"]).register(Quiet("knows"))
    write(db, "cites", ids["inner.x"], ids["root.x"])
    write(db, "knows", ids["inner.x"], ids["root.y"])
    query = db.query().in_world(ids["inner"]).seeds(ids["inner.x"])
    assert names(query.traverse("cites").execute()) == ["root.x"]
    assert names(query.traverse("knows").execute()) == []
    assert set(names(query.traverse(["cites", "knows"]).execute())) == {"root.x"}


def test_a_query_asks_the_world_as_it_was_nested_then(db: WorldDB) -> None:
    ids = nested(db)
    (loose,) = facts(db, "l")
    facts(db, "no", parent=loose)
    db.ontology(ids["outer"]).register(Rewriter("likes"))
    before = db.log()[-1].time
    write(db, "contains", ids["outer"], loose)
    assert len(db.query().in_world(loose).execute()) == 1
    assert len(db.query().in_world(loose).as_of(known=before).execute()) == 2


# -- what the store remembers ----------------------------------------------------------------------


def test_the_store_records_name_version_and_whether_it_is_functional(db: WorldDB) -> None:
    ids = nested(db)
    db.ontology(ids["outer"]).register(Quiet("lives_in", version="7"), functional=True, actor="me")
    db.ontology(ids["outer"]).register(Quiet("knows"))
    types = db.ontology(ids["outer"]).types()
    assert [(item.type, item.version, item.functional) for item in types] == [
        ("knows", "1", False),
        ("lives_in", "7", True),
    ]
    assert {item.world for item in types} == {ids["outer"]}
    assert db.ontology().types() == db.ontology(ids["inner"]).types() == []
    assert [commit.actor for commit in db.log()][-2:] == ["me", "unknown"]
    assert db.check() == []


def test_a_new_version_is_recorded_in_place_of_the_old_one(db: WorldDB) -> None:
    for version, functional in (("1", False), ("2", False), ("2", True)):
        db.ontology().register(Quiet("likes", version=version), functional=functional)
    assert [(item.version, item.functional) for item in db.ontology().types()] == [("2", True)]
    assert len(db.log()) == 4
    assert db.check() == []


def test_a_functional_type_takes_a_second_target(db: WorldDB) -> None:
    """More than one is for the sweep to flag; writing is not refused."""
    a, b, c = facts(db, "abc")
    db.ontology().register(Quiet("lives_in"), functional=True)
    write(db, "lives_in", a, b)
    write(db, "lives_in", a, c)
    assert len(db.edges(a)) == 2


@pytest.mark.parametrize(
    "bad",
    [None, 5, "likes", object(), Quiet, Quiet(""), Quiet(" x"), Quiet("a\0"), Quiet("x" * 200)],
)
def test_what_is_no_handler_is_refused(db: WorldDB, bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        db.ontology().register(bad)
    assert len(db.log()) == 1


def test_a_handler_that_lacks_a_member_is_told_which(db: WorldDB) -> None:
    class Half:
        type = "half"
        pierces = False

        def on_insert(self, ctx: WriteContext, edge: Edge) -> None: ...

    half: Any = Half()
    with pytest.raises(InvalidInputError, match="it lacks on_delete, on_query_rewrite"):
        db.ontology().register(half)
    with pytest.raises(InvalidInputError, match="it lacks on_delete, on_query_rewrite"):
        worlddb.open(":memory:", handlers=[half])


def test_a_registration_needs_a_world_that_exists(db: WorldDB) -> None:
    with pytest.raises(worlddb.NotFoundError):
        db.ontology(bytes(32)).register(Quiet("likes"))


# -- without the handler ---------------------------------------------------------------------------


@pytest.fixture
def left_behind(tmp_path: Path) -> tuple[Path, Id, Id, Edge]:
    """Make a store with edges of a type whose handler the next process does not have."""
    path = tmp_path / "a.db"
    with open_store(path) as db:
        (world,) = facts(db, "w")
        with db.transaction() as tx:
            one, two = fact(tx, "one", parent=world), fact(tx, "two", parent=world)
        db.ontology(world).register(Quiet("likes", version="3"), functional=True)
        edge = write(db, "likes", one, two)
    return path, world, one, edge


def test_a_store_reads_without_the_handler(left_behind: tuple[Path, Id, Id, Edge]) -> None:
    path, world, one, edge = left_behind
    for read_only in (False, True):
        with worlddb.open(path, read_only=read_only) as db:
            assert db.check() == []
            assert db.edges(one) == [edge]
            assert names(db.query().seeds(one).traverse("likes").execute()) == ["two"]
            found = db.query().in_world(world).seeds(one).traverse("likes").execute()
            assert names(found) == ["two"]
            assert [item.type for item in db.ontology(world).types()] == ["likes"]
            lines = list(db.export())
    with worlddb.open(":memory:") as copy:
        copy.replay(lines)
        assert copy.get_edge(edge.id) == edge


def test_writing_the_type_without_its_handler_says_what_to_do(
    left_behind: tuple[Path, Id, Id, Edge],
) -> None:
    path, world, one, edge = left_behind
    hint = r"'likes' \(version 3\) is recorded in this store.*install.*register"
    with worlddb.open(path) as db:
        before = list(db.export())
        with pytest.raises(InvalidInputError, match=hint):
            write(db, "likes", edge.target, one)
        with pytest.raises(InvalidInputError, match=hint), db.transaction() as tx:
            tx.write_edges("likes", [EdgeDraft(source=one, target=one)])
        with pytest.raises(InvalidInputError, match=hint), db.transaction() as tx:
            tx.delete_edge(edge.id)
        assert list(db.export()) == before
        write(db, "refers_to", one, edge.target)  # Everything else can be written.
        db.ontology(world).register(Quiet("likes", version="3"), functional=True)
        write(db, "likes", edge.target, one)
        assert db.check() == []


def test_a_default_type_with_an_inner_handler_that_is_missing_is_not_taken_for_the_default(
    tmp_path: Path,
) -> None:
    with open_store(tmp_path / "a.db") as db:
        ids = nested(db)
        db.ontology(ids["outer"]).register(Quiet("supersedes", version="own"))
    with open_store(tmp_path / "a.db") as db:
        with pytest.raises(InvalidInputError, match="version own"):
            write(db, "supersedes", ids["inner.x"], ids["inner.y"])
        write(db, "supersedes", ids["root.x"], ids["root.y"])


def test_a_read_only_store_takes_the_handler_it_has_recorded_and_no_other(
    left_behind: tuple[Path, Id, Id, Edge],
) -> None:
    path, world, one, _ = left_behind
    with worlddb.open(path, read_only=True) as db:
        db.ontology(world).register(Rewriter("likes", version="3"), functional=True)
        assert len(db.query().in_world(world).execute()) == 1
        with pytest.raises(worlddb.StorageError, match="read-only"):
            db.ontology(world).register(Quiet("likes", version="9"))
        assert names(db.query().seeds(one).traverse("likes").execute()) == ["two"]
        assert [item.version for item in db.ontology(world).types()] == ["3"]


# -- handlers that come with a package or with open ------------------------------------------------

PLUG_IN = """
class Greets:
    type = "greets"
    pierces = True

    def on_insert(self, ctx, edge):
        ctx.create_node(type="Mark", name="greeted")

    def on_delete(self, ctx, edge):
        pass

    def on_query_rewrite(self, query):
        return query


class Endless(Greets):
    version = "9" * 1_000


class Fails(Greets):
    def __init__(self):
        raise OSError("no such greeting")


waves = Greets()
waves.type = "waves"
nothing = 5
"""


def install(folder: Path, points: str) -> None:
    """Lay out an installed package the way an installer does."""
    (folder / "toy_greetings.py").write_text(PLUG_IN)
    info = folder / "toy_greetings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-greetings\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[worlddb.edge_types]\n{points}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    sys.modules.pop("toy_greetings", None)


def test_an_installed_package_offers_types_by_entry_point(site: Path) -> None:
    install(site, "greets = toy_greetings:Greets\nwaves = toy_greetings:waves")
    with open_store() as db:
        a, b = facts(db, "ab")
        write(db, "greets", a, b)
        write(db, "waves", a, b)
        assert marks(db) == ["greeted", "greeted"]
        with db.transaction() as tx:
            world = fact(tx, "world")
            inner = fact(tx, "inner", parent=world)
            tx.write_edge("waves", inner, a)
        found = db.query().in_world(world).seeds(inner).traverse("waves").execute()
        assert names(found) == ["a"]
        assert db.check() == []


def test_a_class_of_handlers_is_no_handler() -> None:
    with open_store() as db, pytest.raises(InvalidInputError, match="is a class"):
        db.ontology().register(Quiet)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("point", "cause"),
    [
        ("toy_greetings:nothing", "5 is not an edge handler"),
        ("toy_greetings:absent", "AttributeError"),
        ("toy_absent:Greets", "ModuleNotFoundError: No module named 'toy_absent'"),
        ("toy_broken:Greets", "ZeroDivisionError"),
        ("toy_greetings:Fails", "OSError: no such greeting"),
        ("toy_greetings:Endless", "version"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_keeps_only_its_type_from_being_written(
    site: Path, caplog: pytest.LogCaptureFixture, point: str, cause: str
) -> None:
    install(site, f"greets = {point}\nwaves = toy_greetings:waves\nrefers_to = {point}")
    (site / "toy_broken.py").write_text("1 / 0")
    with open_store() as db:
        assert cause in caplog.text
        assert "'greets'" in caplog.text
        a, b = facts(db, "ab")
        write(db, "waves", a, b)
        for type_ in ("greets", "refers_to"):
            with pytest.raises(InvalidInputError, match=f"{type_!r} .*not loaded.*{cause}"):
                write(db, type_, a, b)
        with pytest.raises(InvalidInputError, match=f"unknown edge type 'bows'.*{cause}"):
            write(db, "bows", a, b)
        db.ontology().register(Quiet("greets"))
        write(db, "greets", a, b)
        assert names(db.query().seeds(a).traverse("greets").execute()) == ["b"]
        assert db.check() == []


def test_a_type_of_a_package_is_recorded_with_its_first_edge(site: Path, tmp_path: Path) -> None:
    install(site, "greets = toy_greetings:Greets\nwaves = toy_greetings:waves")
    path = tmp_path / "store.db"
    with worlddb.open(path) as db:
        a, b, c = facts(db, "abc")
        assert db.ontology().types() == []
        with pytest.raises(InvalidInputError, match="metadata"):
            write(db, "greets", a, b, metadata=5)
        assert db.ontology().types() == []
        write(db, "greets", a, b)
        write(db, "greets", a, c)
        with db.transaction() as tx:
            drafts = [worlddb.EdgeDraft(source=b, target=one) for one in (a, c)]
            tx.write_edges("waves", drafts)
        recorded = [(it.type, it.version, it.functional) for it in db.ontology().types()]
        assert recorded == [("greets", "1", False), ("waves", "1", False)]
        kinds = [change.kind for commit in db.log() for change in commit.changes]
        assert kinds.count("register") == 2
        assert db.check() == []
    for file in (site / "toy_greetings-1.0.dist-info").iterdir():
        file.unlink()
    with worlddb.open(path) as db:
        assert sorted(names(db.query().seeds(a).traverse("greets").execute())) == ["b", "c"]
        with pytest.raises(InvalidInputError, match="recorded in this store, but its handler"):
            write(db, "greets", b, c)


def test_another_version_of_a_package_is_recorded_and_the_type_stays_functional(
    site: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    with worlddb.open(path) as db:
        a, b = facts(db, "ab")
        db.ontology().register(Quiet("greets", version="0"), functional=True)
    install(site, "greets = toy_greetings:Greets")
    with worlddb.open(path) as db:
        write(db, "greets", a, b)
        assert [(it.version, it.functional) for it in db.ontology().types()] == [("1", True)]
        assert db.check() == []


def test_a_registration_wins_over_a_package_and_a_package_over_nothing(site: Path) -> None:
    install(site, "greets = toy_greetings:Greets")
    with open_store() as db:
        ids = nested(db)
        db.ontology(ids["inner"]).register(Marks("greets", "inner"))
        write(db, "greets", ids["outer.x"], ids["outer.y"])
        write(db, "greets", ids["inner.x"], ids["inner.y"])
        assert marks(db) == ["greeted", "inner"]


def test_handlers_given_to_open_hold_in_the_root_world() -> None:
    with open_store(handlers=[Marks("likes", "given")]) as db:
        ids = nested(db)
        write(db, "likes", ids["inner.x"], ids["root.x"])
        assert marks(db) == ["given"]


def test_a_later_handler_given_to_open_wins() -> None:
    handlers = [Marks("likes", "one"), Marks("likes", "two"), Quiet("supersedes")]
    with open_store(handlers=handlers) as db:
        a, b = facts(db, "ab")
        write(db, "likes", a, b)
        assert marks(db) == ["two"]
        write(db, "supersedes", b, a)
        assert db.get(a).valid_to is None


def test_two_stores_in_one_process_do_not_share_their_types() -> None:
    with open_store() as one, open_store() as other:
        one.ontology().register(Quiet("likes"))
        a, b = facts(other, "ab")
        with pytest.raises(InvalidInputError, match="unknown edge type"):
            write(other, "likes", a, b)


class Forgetful(Quiet):
    """A handler whose rewrite returns what it was told to."""

    def __init__(self, answer: Any) -> None:
        super().__init__("bad")
        self.answer = answer

    def on_query_rewrite(self, query: Query) -> Query:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Query = self.answer
        return answer


@pytest.mark.parametrize("answer", [None, "query", KeyError("x")])
def test_a_bad_rewrite_is_an_error_that_names_the_type(db: WorldDB, answer: Any) -> None:
    ids = nested(db)
    db.ontology(ids["inner"]).register(Forgetful(answer))
    for ask in (
        lambda: db.query().in_world(ids["inner"]).execute(),
        lambda: db.query().in_world(ids["inner"]).explain(),
        lambda: db.recall("x", scope=ids["inner"]),
    ):
        with pytest.raises(ProviderError, match="edge type 'bad': its on_query_rewrite"):
            ask()
    assert db.recall("inner.x", scope=ids["outer"]).hits
