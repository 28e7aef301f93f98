"""Pages of memories in the past: the same as were shown then, and no dearer in a large scope."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from worlddb import Memory, NodeDraft

MANY = 6_000
PAGE = 100


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", recluster="off", user_id="ada") as opened:
        yield opened


def pages(memory: Memory, **options: Any) -> list[str]:
    """Return the texts of all pages, one after the other."""
    found, cursor = [], None
    while True:
        page = memory.list(limit=2, cursor=cursor, **options)
        found += [one.text for one in page]
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_each_page_of_the_past_is_what_was_shown_then(memory: Memory) -> None:
    shown: list[tuple[datetime, list[str]]] = []
    written = []
    for number in range(8):
        at = datetime(2026, 1, 1 + number, tzinfo=UTC)
        written.append(memory.write(f"Box {number} is open.", at=at, extractor="verbatim"))
        if number == 5:
            memory.retire(written[1].id)
            memory.amend(written[2].id, "Box 2 is shut.")
        if number == 6:
            memory.write("A guest wrote this.", user_id="bob", extractor="verbatim")
            [theirs] = memory.list(user_id="bob")
            ada = next(one for one in memory.list_scopes() if one.value == "ada")
            with memory.db.transaction("test") as tx:
                tx.write_edge("contains", ada.id, theirs.id)
        time.sleep(0.002)  # Commits are told apart by their times.
        shown.append((datetime.now(UTC), pages(memory)))
    for then, texts in shown:
        assert pages(memory, known_at=then) == texts
    assert "A guest wrote this." in shown[-1][1]
    early = datetime(2026, 1, 4, 12, tzinfo=UTC)
    assert pages(memory, as_of=early) == [f"Box {number} is open." for number in (3, 2, 1, 0)]
    assert pages(memory, as_of=datetime(2025, 1, 1, tzinfo=UTC)) == []
    assert pages(memory, types=["Turn"]) == []


def test_a_page_of_the_past_does_not_read_the_whole_scope_for_each_of_its_rows(
    memory: Memory,
) -> None:
    memory.write("The first.", extractor="verbatim")
    scope = memory.list_scopes()[0].id
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    with memory.db.transaction("test", bulk=True) as tx:
        drafts = [
            NodeDraft(
                type="Memory",
                name="",
                content=f"Note {number}.",
                parent=scope,
                valid_from=begins + timedelta(minutes=number),
            )
            for number in range(MANY)
        ]
        tx.create_nodes(drafts, reuse=False)

    def cost(**options: Any) -> float:
        began = time.process_time()
        memory.list(limit=PAGE, **options)
        return time.process_time() - began

    present = min(cost() for _ in range(3))
    # Nothing held then, so every row of the scope is passed over.
    before_all = min(cost(as_of=begins - timedelta(days=1)) for _ in range(3))
    other_type = min(cost(types=["Turn"]) for _ in range(3))
    assert before_all < 3 * present
    assert other_type < 3 * present
