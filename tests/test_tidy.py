"""Tidy: properties of the source itself, checked like any other behaviour.

Each rule is a line in ARCHITECTURE.md or CONTRIBUTING.md; this file keeps it true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src" / "worlddb"

# A room may import the rooms named beside it, and itself.
MAY_IMPORT: dict[str, set[str]] = {
    "model": set(),
    "ontology": {"model"},
    "language": set(),
    "store": {"language", "model"},
    "index": {"embed", "store", "language", "model"},
    "write": {"index", "store", "ontology", "language", "model"},
    "read": {"index", "embed", "extract", "resolve", "store", "ontology", "language", "model"},
    "sleep": {"write", "read", "extract", "store", "ontology", "model"},
    "api": {
        *("sleep", "write", "read", "extract", "resolve", "index", "embed", "store"),
        *("ontology", "model"),
    },
    "db": {"api", "sleep", "read", "embed", "store", "ontology", "model"},
    "embed": {"bridge", "model"},
    "bridge": {"extract", "resolve", "model"},
    "extract": {"language", "model"},
    "resolve": {"language", "model"},
    "memory": {"db", "api", "read", "write", "store", "model"},
    "evaluate": {"db", "read", "embed", "bridge", "extract", "model"},
    "faces": {"memory", "db", "evaluate", "sleep", "bridge", "embed", "model"},
    "__main__": {"faces"},
}
SHARED = {"errors"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
NAMES_BANNED = {"utils", "helpers", "common", "misc", "base", "main", "manager", "factory"}
WORDS_BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def rooms_imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "worlddb" and rest:
                yield rest.split(".")[0]


def test_each_room_imports_only_the_rooms_below_it() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}: {room(path)} imports {other}"
        for path, tree in modules()
        if room(path) != "__init__"
        for other in rooms_imported(tree)
        if other in MAY_IMPORT and other not in MAY_IMPORT.get(room(path), set()) | {room(path)}
    ]
    assert wrong == []


def test_every_room_is_on_the_map() -> None:
    rooms = {room(path) for path, _ in modules()}
    assert rooms - MAY_IMPORT.keys() - SHARED <= {"__init__"}


def test_functions_and_files_fit_the_page() -> None:
    wrong = []
    for path, tree in modules():
        where = path.relative_to(SOURCE)
        if (lines := path.read_text(encoding="utf-8").count("\n")) > FILE_LINES_MAX:
            wrong.append(f"{where}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    wrong.append(f"{where}:{node.lineno}: {node.name} has {lines} lines")
    assert wrong == []


def test_only_faces_read_the_environment() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path, tree in modules()
        if room(path) != "faces"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    ]
    assert wrong == []


def test_sql_is_spoken_in_the_store_alone() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}: imports apsw"
        for path, tree in modules()
        if room(path) != "store"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import) and any(alias.name == "apsw" for alias in node.names)
    ]
    assert wrong == []


def test_edges_are_inserted_by_the_reconciler_and_the_replay_alone() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "insert_edges"
    }
    assert callers == {"write/reconcile.py", "write/replay.py"}


def test_every_module_says_what_it_is_and_has_a_name_that_means_something() -> None:
    wrong = []
    for path, tree in modules():
        if not ast.get_docstring(tree):
            wrong.append(f"{path.relative_to(SOURCE)}: no module docstring")
        if path.stem in NAMES_BANNED:
            wrong.append(f"{path.relative_to(SOURCE)}: banned name")
    assert wrong == []


def test_nothing_is_left_for_later() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path, _ in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORDS_BANNED.search(line)
    ]
    assert wrong == []


def test_the_public_names_are_what_the_package_says() -> None:
    import worlddb

    assert sorted(worlddb.__all__) == sorted(set(worlddb.__all__))
    for name in worlddb.__all__:
        assert getattr(worlddb, name).__doc__ or name in ("NOW", "TextMatch"), (
            f"{name} has no docstring"
        )


PUBLIC_CALLS = (
    "db.py",
    "api/reading.py",
    "api/writing.py",
    "api/whole.py",
    "write/transaction.py",
    "read/query.py",
)


@pytest.mark.parametrize("name", PUBLIC_CALLS)
def test_every_public_call_that_can_fail_names_its_errors(name: str) -> None:
    """A public method that takes an id, a time or text says what it raises."""
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    inputs = {"id_or_prefix", "node_id", "edge_id", "as_of", "type", "seq_a", "lines", "path"}
    wrong = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        taken = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
        text = ast.get_docstring(node) or ""
        if taken & inputs and "Raises:" not in text and "builder" not in text:
            wrong.append(f"{name}:{node.lineno}: {node.name}")
    assert [item for item in wrong if "where_connected" not in item] == []
