"""check(): no bit of a store can be changed behind its back without being found.

A small store that has something of everything is damaged in one place, checked, and mended, for
every column of every table; then rows are lost, doubled and swapped, indexes and guards dropped,
and bits of the file itself turned over. Damage is done on a connection of our own, with the guards
in place before and after, so that it is the damage that is found and not a missing guard.
"""

from __future__ import annotations

import random
import shutil
import signal
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from format.make_v1 import build
from thinning import some
from worlddb import WorldDB, WorldDBError
from worlddb.store.sqlite.schema import FORMAT_VERSION, create
from worlddb.store.tables import derived_tables as kept


def tables() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the columns and the key of every table that the schema makes, derived ones apart."""
    con = apsw.Connection(":memory:")
    create(con)
    names = con.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
    found = [str(name) for (name,) in names.fetchall()]
    columns: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    for table in found:
        derived = ("texts", "models", "vectors", "tokens", "pools", "lookups")
        if not table.startswith(("sqlite_", *derived)):
            info: list[Any] = con.execute(f"PRAGMA table_info({table})").fetchall()
            columns[table] = [str(row[1]) for row in info]
            keys[table] = [
                name for _, name in sorted((row[5], str(row[1])) for row in info if row[5])
            ]
    return columns, keys


COLUMNS_OF, KEYS = tables()
COLUMNS = [(table, column) for table, columns in COLUMNS_OF.items() for column in columns]
ROWS_TRIED_MAX = 5
CHECK_S_MAX = 2.0
NUMBERS = (0, -1, -7, 999, 1 << 62, (1 << 62) + 5, (1 << 63) - 1)


class Patient:
    """A sound store, open for reading, and a connection that may do to it what it likes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db: WorldDB = worlddb.open(path, create=False)
        self.con = apsw.Connection(str(path))
        self.con.pragma("synchronous", "off")
        self.con.create_scalar_function("worlddb_write", lambda *args: 1, 0)

    def close(self) -> None:
        """Let go of the file."""
        self.con.close()
        self.db.close()

    def objects(self, kind: str) -> dict[str, str]:
        """Return the statements that made the indexes or triggers, by name."""
        sql = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL ORDER BY name"
        return {str(name): str(text) for name, text in self.con.execute(sql, (kind,))}

    def remove(self, table: str, row: tuple[Any, ...] | None = None) -> None:
        """Delete one row of a table, or all, with the guard away and back again."""
        guard = f"{table}_guard_delete"
        statement = self.objects("trigger")[guard]
        with self.con:
            self.con.execute(f"DROP TRIGGER {guard}")
            if row is None:
                self.con.execute(f"DELETE FROM {table}")
            else:
                columns = COLUMNS_OF[table]
                where = " AND ".join(f"{name} IS ?" for name in KEYS[table])
                values = [row[columns.index(name)] for name in KEYS[table]]
                self.con.execute(f"DELETE FROM {table} WHERE {where}", values)
                assert self.con.changes() == 1
            self.con.execute(statement)

    def insert(self, table: str, row: tuple[Any, ...]) -> bool:
        """Insert a row; return False where the table itself cannot hold it."""
        try:
            marks = ", ".join("?" * len(row))
            self.con.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        except apsw.ConstraintError:
            return False
        return True

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return whole rows of a table, evenly chosen where there are many."""
        found = list(self.con.execute(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}"))
        step = max(1, -(-len(found) // ROWS_TRIED_MAX))
        return list(dict.fromkeys([*found[::step], *found[-1:]]))

    def content(self) -> list[tuple[Any, ...]]:
        """Return everything in every table."""
        return [
            (table, *row)
            for table, keys in KEYS.items()
            for row in self.con.execute(f"SELECT * FROM {table} ORDER BY {', '.join(keys)}")
        ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "sound.db"
    with pytest.MonkeyPatch.context() as patch:
        # So that some pages are written, and the changes of later commits wait beside them.
        patch.setattr(kept, "WAITING_MAX", 40)
        build(path)
    return path


@pytest.fixture(scope="module")
def shared(sound: Path) -> Iterator[Patient]:
    path = sound.with_name("a.db")
    shutil.copyfile(sound, path)
    patient = Patient(path)
    yield patient
    patient.close()


@pytest.fixture
def patient(shared: Patient) -> Iterator[Patient]:
    """Lend the one patient to a test, which has to give it back as sound as it was."""
    before = shared.content()
    assert shared.db.check() == []
    yield shared
    assert shared.content() == before, "the test did not mend what it broke"
    assert shared.db.check() == []


@contextmanager
def time_limit() -> Iterator[None]:
    """Turn a check that does not come to an end into an error."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"the check took longer than {CHECK_S_MAX} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, CHECK_S_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def verdict(check: Callable[[], Any]) -> str:
    """Return "found", "missed", or what went wrong while looking."""
    try:
        with time_limit():
            return "found" if check() else "missed"
    except WorldDBError:
        return "found"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# -- one value at a time ---------------------------------------------------------------------------


def flips(value: Any) -> Iterator[Any]:
    """Yield values that differ from `value` in one bit, or in being there at all."""
    if value is None:
        yield from (0, 5, b"\1" * 32)
    elif isinstance(value, int):
        for bit in (0, 7, 31, 62):
            yield value ^ 1 << bit
        yield value - (1 << 63) if value >= 0 else value + (1 << 63)
    elif isinstance(value, float):
        bits = struct.unpack(">q", struct.pack(">d", value))[0]
        for bit in (0, 51, 52, 60):
            yield struct.unpack(">d", struct.pack(">q", bits ^ 1 << bit))[0]
    elif value:
        data = value.encode() if isinstance(value, str) else value
        for place, bit in ((0, 0), (len(data) // 2, 5), (len(data) - 1, 7)):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            yield bytes(changed)
        yield data[:-1]
        yield data + b"\0"
    else:
        yield b"x"
    if value is not None:
        yield None


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=lambda value: str(value))
def test_a_value_that_was_changed_is_found(patient: Patient, table: str, column: str) -> None:
    names = COLUMNS_OF[table]
    place = names.index(column)
    keys = [names.index(name) for name in KEYS[table]]
    missed = []
    for number, row in enumerate(patient.rows(table)):
        for value in some(flips(row[place]), 4, start=number + place):
            here = [row[key] for key in keys]
            if not update(patient, table, column, value, row[place], here):
                continue
            outcome = verdict(patient.db.check)
            if outcome != "found":
                missed.append((row[keys[0]], row[place], value, outcome))
            there = [value if key == place else row[key] for key in keys]
            assert update(patient, table, column, row[place], row[place], there)
            # One check without an end is enough to know.
            assert not outcome.startswith("TimeoutError"), missed
    assert missed == []


def update(
    patient: Patient, table: str, column: str, value: Any, kind: Any, where: list[Any]
) -> bool:
    """Change one value; return False where the table itself cannot hold it."""
    # What was text stays text, whatever its bytes have become.
    new = "CAST(? AS TEXT)" if isinstance(kind, str) and value is not None else "?"
    old = " AND ".join(
        f"{name} IS CAST(? AS TEXT)" if isinstance(item, str | bytes) else f"{name} IS ?"
        for name, item in zip(KEYS[table], where, strict=True)
    )
    values = [item.encode() if isinstance(item, str) else item for item in (value, *where)]
    try:
        patient.con.execute(f"UPDATE {table} SET {column} = {new} WHERE {old}", values)
    except (apsw.ConstraintError, apsw.MismatchError):
        return False
    assert patient.con.changes() == 1
    return True


# -- rows lost, doubled, swapped -------------------------------------------------------------------


@pytest.mark.parametrize("table", KEYS)
def test_a_row_that_was_lost_is_found(patient: Patient, table: str) -> None:
    missed = []
    for row in patient.rows(table):
        patient.remove(table, row)
        if (outcome := verdict(patient.db.check)) != "found":
            missed.append((row[0], outcome))
        assert patient.insert(table, row)
    assert missed == []


def test_the_store_has_rows_in_every_table(patient: Patient) -> None:
    for table in KEYS:
        assert patient.rows(table), f"nothing in {table}: let the sample store write some"


@pytest.mark.parametrize("table", KEYS)
def test_all_rows_of_a_table_lost_at_once_are_found(patient: Patient, table: str) -> None:
    rows = list(patient.con.execute(f"SELECT * FROM {table}"))
    patient.remove(table)
    outcome = verdict(patient.db.check)
    for row in rows:
        assert patient.insert(table, row)
    assert outcome == "found"


@pytest.mark.parametrize("table", KEYS)
def test_a_row_that_was_doubled_is_found(patient: Patient, table: str) -> None:
    """Under numbers of every kind, also such as no honest row has."""
    columns = COLUMNS_OF[table]
    place = columns.index({"history": "row"}.get(table, KEYS[table][0]))
    missed = []
    for row, number in some(product(patient.rows(table), NUMBERS), 3):
        double = (*row[:place], number, *row[place + 1 :])
        if table == "commits":  # Times are unique; the double comes just before.
            double = (double[0], row[1] - 1, *double[2:])
        if not patient.insert(table, double):
            continue
        if (outcome := verdict(patient.db.check)) != "found":
            missed.append((number, row[0], outcome))
        patient.remove(table, double)
    assert missed == []


@pytest.mark.parametrize("table", ["nodes", "edges", "notes", "commits", "proposals", "conflicts"])
def test_rows_that_changed_places_are_found(patient: Patient, table: str) -> None:
    key = KEYS[table][0]

    def swap(one: int, other: int) -> None:
        with patient.con:
            for new, old in ((-1, one), (one, other), (other, -1)):
                patient.con.execute(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", (new, old))

    numbers = [row[0] for row in patient.con.execute(f"SELECT {key} FROM {table} ORDER BY {key}")]
    for one, other in {(numbers[0], numbers[1]), (numbers[-2], numbers[-1])}:
        swap(one, other)
        assert verdict(patient.db.check) == "found", (one, other)
        swap(one, other)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        (table, column)
        for table, column in COLUMNS
        # Times are unique, and there is one registration only.
        if column not in KEYS[table] and (table, column) != ("commits", "time")
        if table != "registrations"
    ],
    ids=lambda value: str(value),
)
def test_values_that_changed_places_are_found(patient: Patient, table: str, column: str) -> None:
    columns = COLUMNS_OF[table]
    place = columns.index(column)
    rows = patient.rows(table)
    pairs = [
        (one, other) for one in rows for other in rows if repr(one[place]) < repr(other[place])
    ]
    keys = [columns.index(name) for name in KEYS[table]]
    for one, other in some(pairs[:6], 3):
        for row, value in ((one, other[place]), (other, one[place])):
            patient.con.execute(
                f"UPDATE {table} SET {column} = ? WHERE "
                + " AND ".join(f"{name} IS ?" for name in KEYS[table]),
                [value, *(row[key] for key in keys)],
            )
        outcome = verdict(patient.db.check)
        for row in (one, other):
            patient.con.execute(
                f"UPDATE {table} SET {column} = ? WHERE "
                + " AND ".join(f"{name} IS ?" for name in KEYS[table]),
                [row[place], *(row[key] for key in keys)],
            )
        assert outcome == "found", (one, other)


# -- indexes, guards, tables -----------------------------------------------------------------------


def test_every_dropped_index_and_guard_is_found(patient: Patient) -> None:
    missed = []
    objects = [
        (kind, *item) for kind in ("index", "trigger") for item in patient.objects(kind).items()
    ]
    assert len(objects) > 35
    for kind, name, statement in objects:
        patient.con.execute(f"DROP {kind.upper()} {name}")
        if (outcome := verdict(patient.db.check)) != "found":
            missed.append((name, outcome))
        patient.con.execute(statement)
    assert missed == []


def test_a_guard_that_guards_nothing_is_found(patient: Patient) -> None:
    guards = patient.objects("trigger")
    for name in ("edges_guard_insert", "nodes_guard_update", "commits_guard_delete"):
        table, _, action = name.split("_")
        patient.con.execute(f"DROP TRIGGER {name}")
        patient.con.execute(f"CREATE TRIGGER {name} BEFORE {action} ON {table} BEGIN SELECT 1; END")
        outcome = verdict(patient.db.check)
        patient.con.execute(f"DROP TRIGGER {name}")
        patient.con.execute(guards[name])
        assert outcome == "found", name


def test_an_index_over_other_columns_is_found(patient: Patient) -> None:
    statement = patient.objects("index")["edges_source"]
    patient.con.execute("DROP INDEX edges_source")
    patient.con.execute("CREATE INDEX edges_source ON edges (born)")
    outcome = verdict(patient.db.check)
    patient.con.execute("DROP INDEX edges_source")
    patient.con.execute(statement)
    assert outcome == "found"


def test_a_strangers_trigger_is_found(patient: Patient) -> None:
    """It would run inside our own transactions, past every guard."""
    patient.con.execute(
        "CREATE TRIGGER stranger AFTER INSERT ON commits BEGIN UPDATE nodes SET name = 'x'; END"
    )
    outcome = verdict(patient.db.check)
    patient.con.execute("DROP TRIGGER stranger")
    assert outcome == "found"


@pytest.mark.parametrize("table", [*KEYS, "texts"])
def test_a_table_that_is_gone_is_found(sound: Path, tmp_path: Path, table: str) -> None:
    shutil.copyfile(sound, tmp_path / "a.db")
    con = apsw.Connection(str(tmp_path / "a.db"))
    con.execute(f"DROP TABLE {table}")
    con.close()
    assert opened_and_checked(tmp_path / "a.db") == "found"


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        ("user_version", 0),
        ("user_version", -1),
        ("user_version", FORMAT_VERSION + 1),
        ("user_version", 1 << 30),
        ("application_id", 0),
        ("application_id", 0x57724443),
    ],
)
def test_a_file_with_another_stamp_is_refused_and_left_as_it_is(
    sound: Path, tmp_path: Path, pragma: str, value: int
) -> None:
    path = tmp_path / "a.db"
    shutil.copyfile(sound, path)
    con = apsw.Connection(str(path))
    con.pragma(pragma, value)
    con.close()
    before = path.read_bytes()
    with pytest.raises(worlddb.FormatError):
        worlddb.open(path, create=False)
    assert path.read_bytes() == before


# -- the text index --------------------------------------------------------------------------------


def searches(path: Path) -> list[tuple[Any, ...]]:
    """Return everything that full-text search can say: each word's nodes, and how they rank."""
    con = apsw.Connection(str(path))
    con.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, instance)")
    words = sorted({term for (term,) in con.execute("SELECT term FROM temp.words")})
    found: list[tuple[Any, ...]] = list(con.execute("SELECT * FROM temp.words"))
    for word in words:
        sql = "SELECT ?1, rowid, rank FROM texts WHERE texts MATCH ?1 ORDER BY rowid"
        found += con.execute(sql, (f'"{word}"',))
    con.close()
    return found


@pytest.mark.parametrize("table", ["texts_data", "texts_idx", "texts_docsize", "texts_config"])
def test_a_bit_turned_in_the_text_index_is_found_or_changes_no_search(
    patient: Patient, table: str
) -> None:
    healthy = searches(patient.path)
    names = [row[1] for row in patient.con.execute(f"PRAGMA table_info({table})")]
    keys = 2 if table == "texts_idx" else 1
    where = " AND ".join(f"{name} IS ?" for name in names[:keys])
    whole = list(patient.con.execute(f"SELECT * FROM {table}"))
    chooser = random.Random(f"bits of {table}")
    missed = []
    tried = whole if len(whole) <= 12 else chooser.sample(whole, 12)
    for number, row in enumerate(tried):
        for place in range(keys, len(names)):
            name, here = names[place], row[:keys]
            sql = f"UPDATE {table} SET {name} = ? WHERE {where}"
            for value in some(chosen_flips(row[place], chooser), 5, start=number):
                patient.con.execute(sql, [value, *here])
                outcome = searched(patient.path, healthy)
                if outcome not in ("found", "harmless"):
                    missed.append((row[0], name, outcome))
                patient.con.execute(sql, [row[place], *here])
    assert missed == []


def searched(path: Path, healthy: list[tuple[Any, ...]]) -> str:
    """Return "found" where a check finds the damage, "harmless" where no search does either."""
    outcome = opened_and_checked(path)
    if outcome != "missed":
        return outcome
    try:
        changed = searches(path) != healthy
    except apsw.Error as error:
        return f"missed, and a search fails: {error}"
    return "missed, and a search says something else" if changed else "harmless"


def chosen_flips(value: Any, chooser: random.Random) -> Iterator[Any]:
    if not isinstance(value, bytes):
        yield from (item for item in flips(value) if item is not None)
        return
    places = range(len(value)) if len(value) < 70 else chooser.sample(range(len(value)), 70)
    for place in places:
        changed = bytearray(value)
        changed[place] ^= 1 << chooser.randrange(8)
        yield bytes(changed)


@pytest.mark.parametrize("table", ["texts_data", "texts_idx", "texts_docsize"])
def test_a_lost_row_of_the_text_index_is_found_or_changes_no_search(
    patient: Patient, table: str
) -> None:
    healthy = searches(patient.path)
    missed = []
    for row in list(patient.con.execute(f"SELECT * FROM {table}"))[:20]:
        keys = ["segid", "term"] if table == "texts_idx" else ["id"]
        where = " AND ".join(f"{key} IS ?" for key in keys)
        patient.con.execute(f"DELETE FROM {table} WHERE {where}", row[: len(keys)])
        outcome = searched(patient.path, healthy)
        if outcome not in ("found", "harmless"):
            missed.append((row[0], outcome))
        assert patient.insert(table, row)
    assert missed == []


def test_a_text_indexed_under_another_node_is_found(patient: Patient) -> None:
    """The same words, the same counts: only who said them has changed."""
    rows = list(patient.con.execute("SELECT row, name, content FROM nodes WHERE row IN (150, 151)"))
    sql = "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)"

    def index(numbers: list[int]) -> None:
        with patient.con:
            patient.con.execute("DELETE FROM texts WHERE rowid IN (150, 151)")
            for number, (_, name, content) in zip(numbers, rows, strict=True):
                patient.con.execute(sql, (number, name, content))

    assert len({row[1] for row in rows}) == 2
    index([151, 150])
    outcome = verdict(patient.db.check)
    index([150, 151])
    assert outcome == "found"


# -- bits of the file itself -----------------------------------------------------------------------


def opened_and_checked(path: Path) -> str:
    """Open and check a file; "found", "missed", or the error that was not one of ours."""

    def check() -> Any:
        with worlddb.open(path, create=False, busy_timeout_s=0.2) as db:
            return db.check()

    return verdict(check)


def damaged(path: Path, healthy: bytes, offset: int, bit: int, export: list[str]) -> str:
    """Turn one bit of the file and say how that comes out."""
    data = bytearray(healthy)
    data[offset] ^= 1 << bit
    path.write_bytes(data)
    outcome = opened_and_checked(path)
    if outcome == "missed":

        def differs() -> bool:
            with worlddb.open(path, create=False) as db:
                return list(db.export()) != export

        outcome = "harmless" if verdict(differs) == "missed" else "missed, and the content differs"
    for rest in ("-wal", "-shm", "-journal"):
        Path(f"{path}{rest}").unlink(missing_ok=True)
    return outcome


@pytest.mark.parametrize("part", ["header", *range(8)])
def test_a_bit_turned_anywhere_in_the_file_is_found_or_harmless(
    sound: Path, tmp_path: Path, part: str | int
) -> None:
    healthy = sound.read_bytes()
    shutil.copyfile(sound, tmp_path / "good.db")
    with worlddb.open(tmp_path / "good.db", create=False) as db:
        export = list(db.export())
    chooser = random.Random(f"part {part}")
    if part == "header":
        bits = [(offset, bit) for offset in range(100) for bit in (0, 7)]
    else:
        bits = [(chooser.randrange(len(healthy)), chooser.randrange(8)) for _ in range(60)]
    outcomes = {
        (offset, bit): damaged(tmp_path / "a.db", healthy, offset, bit, export)
        for offset, bit in some(bits, 5)
    }
    wrong = {key: text for key, text in outcomes.items() if text not in ("found", "harmless")}
    assert wrong == {}
    assert "found" in outcomes.values()


@pytest.mark.parametrize("size", [0, 1, 2, 99, 100, 4095, 4096, 8192, 40_000, 81_920, -4096, -1])
def test_a_file_that_was_cut_is_found_and_not_taken_for_a_new_one(
    sound: Path, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(sound.read_bytes()[:size])
    assert opened_and_checked(path) == "found"
    assert path.stat().st_size == len(sound.read_bytes()[:size])


def test_a_file_of_one_byte_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"x")
    with pytest.raises(WorldDBError):
        worlddb.open(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == b"x"


def test_pages_that_follow_the_last_one_do_no_harm(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(sound.read_bytes() + bytes(8192))
    assert opened_and_checked(path) in ("found", "missed")
    path.write_bytes(sound.read_bytes()[:4096] * 9)
    assert opened_and_checked(path) == "found"
