"""`interior`: what lives in a world, page by page, within bounds and both clocks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from worlddb import InvalidInputError, Memory, NotFoundError, RejectedError


def test_a_scope_is_listed_newest_first_with_its_size_and_page_by_page() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        for number in range(7):
            memory.write(f"Note {number}.", user_id="ada", extractor="verbatim")
        found, cursor = [], None
        while True:
            page = memory.interior(limit=3, cursor=cursor, user_id="ada")
            assert page.size == 7
            found += [node.content for node in page]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == [f"Note {number}." for number in range(6, -1, -1)]
        with pytest.raises(InvalidInputError):
            memory.interior(cursor="nothing", user_id="ada")
        assert memory.interior(user_id="nobody").nodes == ()


def test_a_session_has_the_size_of_its_turns_and_its_turns_inside() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        said = [{"role": "user", "content": f"Line {number}."} for number in range(3)]
        memory.write(messages=said, user_id="ada", extractor="verbatim")
        page = memory.interior(user_id="ada")
        sizes = {node.type: size for node, size in zip(page.nodes, page.sizes, strict=True)}
        assert sizes["Session"] == 3
        session = next(node for node in page if node.type == "Session")
        inside = memory.interior(session.id, user_id="ada")
        assert {node.content for node in inside} == {one["content"] for one in said}


def test_names_are_listed_by_their_type() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("Sarah Chen leads Project Falcon.", user_id="ada")
        named = {node.name for node in memory.interior(type="Entity", user_id="ada")}
        assert named == {"Sarah Chen", "Project Falcon"}


def test_a_member_is_inside_each_of_its_scopes_now_and_in_the_past() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        first = memory.write("A.", user_id="ada", agent_id="bot", extractor="verbatim")
        memory.write("B.", agent_id="bot", extractor="verbatim")
        assert first.commit is not None
        now = memory.interior(agent_id="bot")
        then = memory.interior(agent_id="bot", known_at=first.commit.time)
        assert {node.content for node in now} >= {"A."}
        assert "B." not in {node.content for node in then}
        assert {node.content for node in then} == {"A."}


def test_what_has_ended_or_is_of_others_is_not_seen() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        gone = memory.write("Gone.", user_id="ada", at=datetime(2026, 1, 1, tzinfo=UTC))
        memory.retire(gone.id, user_id="ada", at=datetime(2026, 2, 1, tzinfo=UTC))
        other = memory.write("Secret.", user_id="bob", extractor="verbatim")
        assert memory.interior(user_id="ada").nodes == ()
        assert [
            node.content for node in memory.interior(user_id="ada", as_of="2026-01-15T00:00Z")
        ] == ["Gone."]
        ada = memory.bound(user_id="ada")
        with pytest.raises(RejectedError):
            ada.interior(user_id="bob")
        with pytest.raises(NotFoundError):
            ada.interior(other.id)
        scope = memory.list_scopes()[1]
        assert scope.value == "bob"
        with pytest.raises(NotFoundError):
            ada.interior(scope.id)
