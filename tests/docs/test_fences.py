"""Documentation is tested: every Python fence runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb.ontology.edge_types import default_handlers

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#]+)")


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_python_fence_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    for number, (language, code) in enumerate(fences):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page.name}[{number}]", "exec"), namespace)
        if number + 1 < len(fences) and fences[number + 1][0] == "text":
            assert printed.getvalue() == fences[number + 1][1]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_public_name_has_a_heading_in_the_reference() -> None:
    text = (REPOSITORY / "docs/reference/python.md").read_text(encoding="utf-8")
    headings = " ".join(line for line in text.splitlines() if line.startswith("#"))
    assert [name for name in worlddb.__all__ if f"`{name}`" not in headings] == []


def test_every_method_of_the_store_and_the_transaction_is_in_the_reference() -> None:
    text = (REPOSITORY / "docs/reference/python.md").read_text(encoding="utf-8")
    classes = (
        worlddb.WorldDB,
        worlddb.Transaction,
        worlddb.QueryBuilder,
        worlddb.Ontology,
        worlddb.Memory,
    )
    missing = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name in vars(cls)
        if not name.startswith("_") and f"`{name}" not in text
    ]
    assert missing == []


def test_every_edge_type_has_a_heading_in_the_reference() -> None:
    text = (REPOSITORY / "docs/reference/edge-types.md").read_text(encoding="utf-8")
    assert [item.type for item in default_handlers() if f"## `{item.type}`" not in text] == []


def test_the_python_reference_is_what_the_docstrings_say() -> None:
    made = runpy.run_path(str(REPOSITORY / "docs/reference/generate.py"))["page"]()
    assert (REPOSITORY / "docs/reference/python.md").read_text(encoding="utf-8") == made, (
        "run: python docs/reference/generate.py"
    )
