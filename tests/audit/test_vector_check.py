"""check() of embeddings: damage to a model, a vector or a pool is found; a sound store is clean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import worlddb
from index.exact_texts import DIM, ExactEmbedder
from thinning import DEEP, some
from worlddb import NodeDraft, ProviderError, WorldDB
from worlddb.index import vectors

KEYS = {"models": ("number",), "vectors": ("model", "node"), "pools": ("model", "node")}
NUMBERS = (0, -1, 2, 7, 99, 1 << 40, -(1 << 62), (1 << 63) - 1)
REALS = (0.0, -1.0, 1.5, 1e308, float("inf"), float("-inf"))
SIZES = (0, 1, 2 * DIM - 2, 2 * DIM, 2 * DIM + 2, 8 * DIM, 8 * DIM + 8)


def half(*values: float) -> bytes:
    return np.resize(np.array(values, dtype="<f2"), DIM).tobytes()


class Patient:
    """An embedded store, open for reading, and a connection that may do to it what it likes."""

    def __init__(self, path: Path) -> None:
        self.db: WorldDB = worlddb.open(path, create=False)
        self.con = apsw.Connection(str(path))
        self.con.pragma("synchronous", "off")

    def close(self) -> None:
        self.con.close()
        self.db.close()

    def columns(self, table: str) -> list[str]:
        return [str(row[1]) for row in self.con.execute(f"PRAGMA table_info({table})")]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return list(self.con.execute(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}"))

    def set(self, table: str, row: tuple[Any, ...], column: str, value: object) -> bool:
        """Change one field of one row; return False where the table cannot hold it."""
        try:
            self.replace(
                table,
                row,
                tuple(
                    value if name == column else old
                    for name, old in zip(self.columns(table), row, strict=True)
                ),
            )
        except apsw.ConstraintError:
            return False
        return True

    def replace(self, table: str, row: tuple[Any, ...], new: tuple[Any, ...]) -> None:
        columns = self.columns(table)
        where = " AND ".join(f"{name} = ?" for name in KEYS[table])
        values = [row[columns.index(name)] for name in KEYS[table]]
        self.con.execute(
            f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE {where}",
            (*new, *values),
        )
        assert self.con.changes() == 1

    def complaints(self) -> list[str]:
        return [f"{problem.place}: {problem.message}" for problem in self.db.check()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with nested worlds, moved and closed children, and a second model half-way."""
    path = tmp_path_factory.mktemp("vectors") / "store.db"
    with worlddb.open(path, embedder=ExactEmbedder()) as db:
        with db.transaction() as tx:
            outer = tx.create_node(type="Topic", name="outer").id
            inner = tx.create_node(type="Topic", name="inner", parent=outer).id
            leaves = tx.create_nodes(
                NodeDraft(type="Fact", name=f"leaf {i}", parent=inner) for i in range(4)
            )
            moved = tx.create_node(type="Fact", name="moved").id
            emptied = tx.create_node(type="Scope").id
            passing = tx.create_node(type="Fact", name="passing", parent=emptied).id
        db.reindex()
        with db.transaction() as tx:
            tx.write_edge("contains", outer, moved)
            tx.retire(leaves[0])
            tx.retire(passing)
        db.reindex()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(ProviderError):  # noqa: PT012
            patch.setattr(vectors, "EMBED_BATCH", 4)
            db.reindex(ExactEmbedder("half-way", fails_after=4))
    return path


@pytest.fixture
def patient(path: Path) -> Iterator[Patient]:
    found = Patient(path)
    assert found.complaints() == []
    before = {table: found.rows(table) for table in KEYS}
    yield found
    for table, rows in before.items():
        found.con.execute(f"DELETE FROM {table}")
        marks = ", ".join("?" * len(rows[0]))
        found.con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    assert found.complaints() == []
    found.close()


def values_for(old: object) -> list[Any]:
    """Return what a field may be changed to."""
    if isinstance(old, int):
        return [value for value in NUMBERS if value != old]
    if isinstance(old, float):
        return [value for value in REALS if value != old]
    if isinstance(old, str):
        return ["", "mean", "max", "\ud7ff" * 99]
    assert isinstance(old, bytes)
    sound = np.frombuffer(old, "<f2" if len(old) == 2 * DIM else "<f8").copy()
    sound[3] += 0.25
    return [
        *(bytes([251]) * size for size in SIZES),
        *(bytes(size) for size in SIZES if size != len(old) or any(old)),
        half(0.0, float("nan")),
        half(float("inf")),
        half(1.0),
        sound.tobytes(),
        old[:-1],
        old + b"\0",
    ]


@pytest.mark.parametrize("table", KEYS)
def test_no_field_of_any_row_can_be_changed_unnoticed(patient: Patient, table: str) -> None:
    unnoticed = []
    tried = 0
    for number, row in enumerate(patient.rows(table)):
        for column, old in zip(patient.columns(table), row, strict=True):
            for value in some(values_for(old), 3, start=number):
                changed = tuple(
                    value if name == column else was
                    for name, was in zip(patient.columns(table), row, strict=True)
                )
                if not patient.set(table, row, column, value):
                    continue
                tried += 1
                if not patient.complaints():
                    unnoticed.append((table, column, value))
                patient.replace(table, changed, row)
    assert tried > (40 if DEEP else 12)
    assert unnoticed == []


@pytest.mark.parametrize("table", KEYS)
def test_a_lost_row_is_found(patient: Patient, table: str) -> None:
    for row in patient.rows(table):
        columns = patient.columns(table)
        where = " AND ".join(f"{name} = ?" for name in KEYS[table])
        values = [row[columns.index(name)] for name in KEYS[table]]
        patient.con.execute(f"DELETE FROM {table} WHERE {where}", values)
        assert patient.complaints(), row
        patient.con.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def test_an_erased_table_is_found(patient: Patient) -> None:
    for table, complaint in (
        ("vectors", "9 nodes recorded as embedded have no vector"),
        ("pools", "it has children but no pool"),
        ("models", "there is no such model"),
    ):
        with patient.con:
            rows = patient.rows(table)
            patient.con.execute(f"DELETE FROM {table}")
        assert any(complaint in text for text in patient.complaints()), table
        marks = ", ".join("?" * len(rows[0]))
        patient.con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    for table in KEYS:
        patient.con.execute(f"DELETE FROM {table}")
    assert {text.partition(":")[0] for text in patient.complaints()} == {*KEYS}


def test_vectors_of_a_model_or_a_node_that_is_not_there_are_found(patient: Patient) -> None:
    one = half(DIM**-0.5)
    for table, row, complaint in (
        ("vectors", (9, 2, one), "vectors of model number 9: there is no such model"),
        ("vectors", (1, 999, one), "1 vectors belong to nodes not recorded as embedded"),
        ("vectors", (1, 1, one), "1 vectors belong to nodes not recorded as embedded"),
        ("pools", (9, 2, 1, 1.0, bytes(8 * DIM), one, 1), "pools of model number 9"),
        ("pools", (1, 1, 1, 1.0, bytes(8 * DIM), one, 1), "its world is not composed yet"),
        ("pools", (1, 4, 0, 0.0, bytes(8 * DIM), one, 1), "does not follow from its sums"),
        ("models", (7, "x", 8, 1, "mean", 1, 1, -1), "not exactly one of them is active"),
    ):
        marks = ", ".join("?" * len(row))
        patient.con.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        assert any(complaint in text for text in patient.complaints()), (row, complaint)
        where = " AND ".join(f"{name} = ?" for name in KEYS[table])
        patient.con.execute(f"DELETE FROM {table} WHERE {where}", row[: len(KEYS[table])])
    assert patient.complaints() == []


def test_two_vectors_that_changed_places_are_found(patient: Patient) -> None:
    rows = {row[1]: row for row in patient.rows("vectors") if row[0] == 1}
    # Two leaves of different worlds; either alone is a vector like any other.
    for node, other in ((5, 8), (8, 5)):
        patient.con.execute(
            "UPDATE vectors SET vector = ? WHERE model = 1 AND node = ?", (rows[other][2], node)
        )
    found = patient.complaints()
    assert sum("its sums are not those of its children" in text for text in found) == 2


def test_a_model_that_lags_behind_is_no_damage(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "store.db", embedder=ExactEmbedder()) as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="world").id
            child = tx.create_node(type="Fact", name="child", parent=world).id
        assert db.check() == []
        db.reindex()
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="second", parent=world)
            tx.retire(child)
        assert db.check() == []
        db.reindex()
        assert db.check() == []


def test_a_large_world_is_checked_in_parts(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "store.db", embedder="hash-16", durability="normal") as db:
        with db.transaction(bulk=True) as tx:
            world = tx.create_node(type="Topic", name="world").id
            tx.create_nodes(
                NodeDraft(type="Fact", name=f"child {i}", parent=world) for i in range(9_000)
            )
        db.reindex()
        assert db.check() == []
        with db.engine.store.derive() as session:
            session.con.execute(  # type: ignore[attr-defined]
                "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE node = 3) "
                "WHERE node = 8999"
            )
        assert "model 'hash-16', pool of world row 2" in [it.place for it in db.check()]
