"""LangGraph's own conformance suite on our checkpoint saver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from langgraph.checkpoint.conformance import checkpointer_test, validate

import worlddb
from worlddb.adapters.langgraph_saver import WorldSaver


def test_the_saver_has_every_capability(tmp_path: Path) -> None:
    @checkpointer_test(name="WorldSaver")
    async def saver() -> AsyncIterator[WorldSaver]:
        number = len(list(tmp_path.glob("*.db")))
        path = tmp_path / f"{number}.db"
        with worlddb.open(path, embedder="none", durability="normal") as db:
            yield WorldSaver(db)

    report = asyncio.run(validate(saver))
    report.print_report()
    assert report.passed_all()
