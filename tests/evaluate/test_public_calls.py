"""Evaluation uses the engine as everybody else does, and the engine knows nothing of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import worlddb

PACKAGE = Path(worlddb.__file__).parent
ALLOWED = {"worlddb", "worlddb.errors"}


def imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each module that a file imports from, with the names it takes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []


def test_evaluation_imports_public_names_alone() -> None:
    wrong = []
    for path in sorted((PACKAGE / "evaluate").glob("*.py")):
        for module, names in imports(path):
            inner = module.startswith("worlddb") and not module.startswith("worlddb.evaluate")
            if inner and module not in ALLOWED:
                wrong.append(f"{path.name}: {module}")
            if module == "worlddb":
                public = {*worlddb.__all__, "__version__"}
                wrong += [f"{path.name}: {name}" for name in names if name not in public]
    assert wrong == []


def test_evaluation_uses_no_private_name_of_another_object() -> None:
    wrong = []
    for path in sorted((PACKAGE / "evaluate").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        wrong += [
            f"{path.name}:{node.lineno}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and ast.unparse(node.value) != "self"
        ]
    assert wrong == []


def test_nothing_but_the_command_line_imports_evaluation() -> None:
    importers = {
        path.relative_to(PACKAGE).parts[:2]
        for path in PACKAGE.rglob("*.py")
        for module, _ in imports(path)
        if module.startswith("worlddb.evaluate")
    }
    assert {parts[0] for parts in importers} == {"evaluate", "faces"}
    assert {parts for parts in importers if parts[0] == "faces"} == {("faces", "cli")}
