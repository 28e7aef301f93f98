"""Tidy: properties of the source itself, checked like any other behaviour.

The rooms and what each may import stand in one table, in ARCHITECTURE.md; this test reads it there.
So the document, the test and the import graph cannot drift apart.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src" / "worlddb"
SHARED = {"errors"}
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
NAMES_BANNED = {"utils", "helpers", "common", "misc", "base", "main", "manager", "factory"}
PARTICIPLES = {"told", "given", "kept", "known", "found", "later", "usual", "placed", "wide"}
NOUNS_IN_ING = {"ranking", "string", "setting", "spelling", "meaning", "mapping", "testing"}
WORDS_BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    paths = sorted(SOURCE.rglob("*.py"))
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def allowed_imports() -> dict[str, set[str]]:
    """Return the table of rooms in ARCHITECTURE.md: what each room may import."""
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)/?` \|[^|]*\| ([^|]*) \|$", text, re.MULTILINE)
    table = {name.removesuffix(".py"): set(re.findall(r"\w+", found)) for name, found in rows}
    assert table, "ARCHITECTURE.md has no table of rooms"
    return table


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


def test_each_room_imports_only_what_the_architecture_says() -> None:
    table = allowed_imports()
    wrong = {
        f"{path.relative_to(SOURCE)}: {room(path)} imports {other}"
        for path, tree in modules()
        if room(path) not in {"__init__"} | SHARED
        for other in rooms_imported(tree)
        if other in table and other not in table[room(path)] | {room(path)}
    }
    assert sorted(wrong) == []


def test_the_table_of_rooms_names_every_room_and_nothing_that_is_not_used() -> None:
    table = allowed_imports()
    used: dict[str, set[str]] = defaultdict(set)
    for path, tree in modules():
        used[room(path)].update(rooms_imported(tree))
    assert set(used) - SHARED - {"__init__"} == set(table)
    idle = {f"{name}: {other}" for name, allowed in table.items() for other in allowed - used[name]}
    assert sorted(idle) == []


def test_imports_point_down_the_table() -> None:
    order = list(allowed_imports())
    upward = {
        f"{name} imports {other}"
        for name, allowed in allowed_imports().items()
        for other in allowed
        if order.index(other) <= order.index(name)
    }
    assert sorted(upward) == []


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


def test_a_name_of_a_module_is_given_once() -> None:
    wrong = []
    for path, tree in modules():
        names = [
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        wrong += [f"{path.name}: {name}" for name in {*names} if names.count(name) > 1]
    assert sorted(wrong) == []


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
        f"{path.relative_to(SOURCE)}: imports {alias.name}"
        for path, tree in modules()
        if room(path) != "store"
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in {"apsw", "psycopg", "sqlite3"}
    ]
    assert wrong == []


def test_edges_are_inserted_by_the_reconciler_and_the_replay_alone() -> None:
    callers = {
        str(path.relative_to(SOURCE))
        for path, tree in modules()
        if room(path) not in {"store", "testing"}
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "insert_edges"
    }
    assert callers == {"write/reconcile.py", "audit/journal_export.py"}


def test_every_module_says_what_it_is_and_is_named_by_a_noun() -> None:
    wrong = []
    for path, tree in modules():
        where, name = path.relative_to(SOURCE), path.stem
        if not ast.get_docstring(tree):
            wrong.append(f"{where}: no module docstring")
        if name in NAMES_BANNED | PARTICIPLES or (
            name.endswith("ing") and name not in NOUNS_IN_ING
        ):
            wrong.append(f"{where}: not a noun that says what is inside")
    assert wrong == []


def test_a_module_and_a_class_have_a_name_of_their_own() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    classes: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules():
        where = str(path.relative_to(SOURCE))
        # A file in commands/ is named after the first command that it holds.
        if not path.stem.startswith("__") and path.parent.name != "commands":
            files[path.stem].append(where)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(where)
    twice = {
        name: places
        for names in (files, classes)
        for name, places in names.items()
        if len(places) > 1
    }
    assert twice == {}


def test_a_public_method_without_a_docstring_is_described_by_a_protocol() -> None:
    """What a protocol says of its methods, its implementations need not say again."""

    def described(method: ast.FunctionDef) -> bool:
        decorators = {ast.unparse(each).split(".")[-1] for each in method.decorator_list}
        return bool(ast.get_docstring(method) or decorators & {"setter", "overload"})

    seams: set[str] = set()
    silent: list[tuple[str, str]] = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            if {"Protocol", "ABC"} & {ast.unparse(base).split("[")[0] for base in node.bases}:
                seams.update(each.name for each in methods)
            else:
                where = f"{path.relative_to(SOURCE)}: {node.name}"
                silent += [(where, each.name) for each in methods if not described(each)]
    wrong = [
        f"{where}.{name}"
        for where, name in silent
        if not name.startswith(("_", "test_")) and name not in seams
    ]
    assert wrong == []


def test_nothing_is_composed_by_inheriting_from_several_of_our_own() -> None:
    own = {
        node.name
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    wrong = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and sum(isinstance(base, ast.Name) and base.id in own for base in node.bases) > 1
        and not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    ]
    assert wrong == []


def test_nobody_reaches_into_a_private_name_of_another_object() -> None:
    """`x._name` is for `self` and `cls`, or for a class of the same file."""
    wrong = []
    for path, tree in modules():
        mine = _private_names(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not re.match(r"_[a-z]", node.attr):
                continue
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in {"self", "cls"}:
                continue
            if ast.unparse(node) in PRIVATE_BY_NECESSITY:
                continue
            if node.attr not in mine | NAMEDTUPLE_METHODS:
                where = path.relative_to(SOURCE)
                wrong.append(f"{where}:{node.lineno}: {ast.unparse(node)}")
    assert wrong == []


PRIVATE_BY_NECESSITY = {
    # There is no public way to end a process without waiting for its threads.
    "os._exit",
}
NAMEDTUPLE_METHODS = {"_replace", "_fields", "_make", "_asdict"}


def _private_names(tree: ast.Module) -> set[str]:
    """Return the private attributes and methods that the classes of a file define."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def test_nothing_is_left_for_later() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path, _ in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if WORDS_BANNED.search(line)
    ]
    assert wrong == []


def test_the_core_never_imports_the_evaluation() -> None:
    wrong = [
        str(path.relative_to(SOURCE))
        for path, tree in modules()
        if room(path) not in {"faces", "evaluate"} and "evaluate" in set(rooms_imported(tree))
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
    "world_db.py",
    "memory/memory.py",
    "memory/endings.py",
    "memory/listings.py",
    "memory/prompt_context.py",
    "memory/reads.py",
    "memory/receipts.py",
    "memory/scope_grants.py",
    "memory/scope_policies.py",
    "memory/writes.py",
    "memory/version_keepers.py",
    "memory/scoped_graph.py",
    "write/transaction.py",
    "query/query_builder.py",
)


@pytest.mark.parametrize("name", PUBLIC_CALLS)
def test_every_public_call_that_can_fail_names_its_errors(name: str) -> None:
    """A public method that takes an id, a time or text says what it raises."""
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    inputs = {"id", "id_or_prefix", "node_id", "edge_id", "as_of", "type", "seq_a", "lines", "path"}
    inputs |= {"at", "query", "text"}
    wrong = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        taken = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
        text = ast.get_docstring(node) or ""
        if taken & inputs and "Raises:" not in text and "builder" not in text:
            wrong.append(f"{name}:{node.lineno}: {node.name}")
    assert [item for item in wrong if "where_connected" not in item and "is_new" not in item] == []
