"""The nine tools, over real stdio, in both eras."""

from __future__ import annotations

import re

import pytest

from .talking import Era, Talk

pytestmark = pytest.mark.anyio

ID = re.compile("[0-9a-f]{8}")
TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z)?")


async def test_the_client_speaks_the_era_that_was_asked_for(talk: Talk, era: Era) -> None:
    spoken = talk.client.session.protocol_version
    assert spoken == ("2025-11-25" if era == "legacy" else era)


async def test_a_write_says_what_it_did(talk: Talk, user: str) -> None:
    told = await talk.call(
        "memory_write",
        text="My manager Sarah Chen likes green tea",
        user_id=user,
        agent_id="helper",
        source="chat of 3 May",
        metadata={"topic": "tea"},
        at="2026-05-03T09:00:00Z",
    )
    assert ID.fullmatch(told["id"])
    assert told["created"] is True
    assert told["scopes"] == [f"user:{user}", "agent:helper"]
    assert "Sarah Chen" in told["entities"]
    assert told["commit"] >= 1
    read = await talk.call("memory_read", id=told["id"])
    assert read["text"] == "My manager Sarah Chen likes green tea"
    assert read["valid_from"] == "2026-05-03T09:00Z"
    assert read["provenance"] == ["chat of 3 May"]
    assert read["metadata"] == {"topic": "tea"}
    assert TIME.fullmatch(read["known_from"])
    assert "retired" not in read


async def test_what_is_known_is_not_written_twice(talk: Talk, user: str) -> None:
    first = await talk.call("memory_write", text="Ada lives in Paris", user_id=user)
    again = await talk.call("memory_write", text="Ada lives in Paris", user_id=user)
    assert again["id"] == first["id"]
    assert again["created"] is False
    assert len((await talk.call("memory_list", user_id=user))["memories"]) == 1


async def test_the_same_key_again_does_nothing_and_for_another_text_is_refused(
    talk: Talk, user: str
) -> None:
    key = {"user_id": user, "idempotency_key": "k1"}
    first = await talk.call("memory_write", text="one", **key)
    again = await talk.call("memory_write", text="one", **key)
    assert (again["id"], again["created"], "commit" in again) == (first["id"], False, False)
    assert "k1" in await talk.refused("memory_write", text="two", **key)


async def test_a_chat_is_remembered_by_its_messages(talk: Talk, user: str) -> None:
    messages = [
        {"role": "user", "content": "I moved to Lisbon", "at": "2026-01-02T10:00:00Z"},
        {"role": "assistant", "content": "How nice"},
    ]
    told = await talk.call("memory_write", messages=messages, user_id=user)
    read = await talk.call("memory_read", id=told["id"])
    assert read["text"] == "user: I moved to Lisbon\nassistant: How nice"
    [hit, *_] = (await talk.call("memory_recall", query="Where to move?", user_id=user))["hits"]
    assert (hit["speaker"], hit["text"]) == ("user", "I moved to Lisbon")


@pytest.mark.parametrize("text", ["null", "[1, 2]", '{"a": 1}', "5", "true", '"quoted"'])
async def test_a_text_that_looks_like_json_stays_as_it_is(talk: Talk, user: str, text: str) -> None:
    told = await talk.call("memory_write", text=text, user_id=user)
    assert (await talk.call("memory_read", id=told["id"], user_id=user))["text"] == text


async def test_objects_and_lists_may_come_as_json_text(talk: Talk, user: str) -> None:
    told = await talk.call(
        "memory_write",
        messages='[{"role": "user", "content": "by text"}, {"content": "again"}]',
        metadata='{"a": [1]}',
        user_id=user,
    )
    read = await talk.call("memory_read", id=told["id"])
    assert read["text"] == "user: by text\nuser: again"
    assert read["metadata"] == {"a": [1]}


async def test_one_value_for_a_list_and_a_number_of_seconds_are_understood(
    talk: Talk, user: str
) -> None:
    done = await talk.call(
        "memory_write", text="A coupon", user_id=user, tags="shop", names=[], ttl=3600
    )
    held = await talk.call("memory_read", id=done["id"])
    assert held["metadata"] == {"tags": ["shop"]}
    assert held["valid_to"] > held["valid_from"]


async def test_a_hit_says_its_ranks_validity_and_source(talk: Talk, user: str) -> None:
    await talk.call("memory_write", text="Bob plays the cello", user_id=user, source="Bob himself")
    await talk.call("memory_write", text="The roof is green", user_id=user)
    question = {"query": "What does Bob play?", "user_id": user, "k": 1}
    [brief] = (await talk.call("memory_recall", **question))["hits"]
    assert set(brief) == {"id", "text", "valid_from"}
    [hit] = (await talk.call("memory_recall", **question, explain=True))["hits"]
    assert hit["text"] == "Bob plays the cello"
    assert hit["lanes"] == {"text": 1, "vector": 1, "graph": 1}
    assert hit["score"] > 0
    assert TIME.fullmatch(hit["valid_from"])
    assert "valid_to" not in hit
    assert hit["provenance"] == ["Bob himself"]


async def test_recall_stays_inside_every_scope_that_is_named(talk: Talk, user: str) -> None:
    await talk.call("memory_write", text="shared note", user_id=user, run_id="r1")
    question = {"query": "shared note", "user_id": user}
    assert (await talk.call("memory_recall", **question, run_id="r1"))["hits"]
    assert not (await talk.call("memory_recall", **question, run_id="r2"))["hits"]
    assert not (await talk.call("memory_recall", query="shared note", user_id="nobody"))["hits"]


async def test_amending_supersedes_and_the_past_can_still_be_asked_for(
    talk: Talk, user: str
) -> None:
    old = await talk.call(
        "memory_write", text="Tea is at four", user_id=user, at="2026-01-01T00:00:00Z"
    )
    new = await talk.call(
        "memory_amend", id=old["id"][:6], text="Tea is at five", at="2026-06-01T00:00:00Z"
    )
    assert new["superseded"] == [old["id"]]
    assert new["scopes"] == [f"user:{user}"]

    async def texts(**options: object) -> list[str]:
        found = await talk.call("memory_recall", query="When is tea?", user_id=user, **options)
        return [hit["text"] for hit in found["hits"]]

    assert await texts() == ["Tea is at five"]
    assert await texts(as_of="2026-03-01T00:00:00Z") == ["Tea is at four"]
    assert await texts(known_at="2020-01-01T00:00:00Z") == []
    assert sorted(await texts(include_retired=True)) == ["Tea is at five", "Tea is at four"]
    read = await talk.call("memory_read", id=old["id"])
    assert read["retired"] is True
    assert read["valid_to"] == "2026-06-01"
    assert read["superseded_by"] == [new["id"]]
    assert "superseded by" in await talk.refused("memory_amend", id=old["id"], text="Tea is at six")


async def test_what_is_retired_is_listed_only_on_demand(talk: Talk, user: str) -> None:
    told = await talk.call("memory_write", text="Old news", user_id=user)
    ended = await talk.call("memory_retire", id=told["id"], user_id=user)
    assert (ended["count"], ended["ids"]) == (1, [told["id"]])
    assert (await talk.call("memory_retire", id=told["id"]))["count"] == 0
    assert (await talk.call("memory_list", user_id=user))["memories"] == []
    [left] = (await talk.call("memory_list", user_id=user, include_retired=True))["memories"]
    assert left["retired"] is True


async def test_pages_follow_one_another_until_the_last(talk: Talk, user: str) -> None:
    for number in range(5):
        await talk.call("memory_write", text=f"note number {number}", user_id=user)
    pages: list[list[str]] = []
    cursor = None
    while not pages or cursor:
        page = await talk.call("memory_list", user_id=user, limit=2, cursor=cursor)
        pages.append([one["text"][-1] for one in page["memories"]])
        cursor = page.get("next_cursor")
    assert pages == [["4", "3"], ["2", "1"], ["0"]]
    assert "next_cursor" in await talk.refused("memory_list", user_id=user, cursor="0" * 64)


async def test_scopes_are_listed_by_kind_and_in_pages(talk: Talk, user: str) -> None:
    await talk.call("memory_write", text="hello", user_id=user, app_id="mail", run_id="7")
    found = await talk.call("memory_list_scopes", kind="app")
    assert {"kind": "app", "value": "mail"}.items() <= found["scopes"][0].items()
    names: list[str] = []
    cursor = None
    while not names or cursor:
        page = await talk.call("memory_list_scopes", limit=1, cursor=cursor)
        names += [one["name"] for one in page["scopes"]]
        cursor = page.get("next_cursor")
    assert {f"user:{user}", "app:mail", "run:7"} <= set(names)


async def test_a_prefix_has_to_be_long_enough_and_of_one_memory_alone(
    talk: Talk, user: str
) -> None:
    ids = [
        (await talk.call("memory_write", text=f"thing {number}", user_id=user))["id"]
        for number in range(3)
    ]
    for ident in ids:
        assert (await talk.call("memory_read", id=ident[:7]))["id"] == ident
    assert "at least 4" in await talk.refused("memory_read", id=ids[0][:3])
    assert "no memory" in await talk.refused("memory_read", id="0" * 64)
    assert "no memory" in await talk.refused("memory_read", id=ids[0], user_id="somebody else")


async def test_a_long_text_is_cut_in_lists_and_whole_when_read(talk: Talk, user: str) -> None:
    text = "The long story of the lighthouse. " * 1_000
    told = await talk.call("memory_write", text=text, user_id=user)
    [listed] = (await talk.call("memory_list", user_id=user))["memories"]
    [hit] = (await talk.call("memory_recall", query="lighthouse", user_id=user))["hits"]
    for short in (listed, hit):
        assert short["truncated"] is True
        assert len(short["text"]) < 5_000
    assert (await talk.call("memory_read", id=told["id"]))["text"].strip() == text.strip()


async def test_what_a_model_leaves_empty_it_leaves_out(talk: Talk, user: str) -> None:
    empty = {"at": "", "source": "", "metadata": "", "idempotency_key": ""}
    told = await talk.call("memory_write", text="the kettle is on", user_id=user, **empty)
    assert told["created"]
    found = await talk.call("memory_recall", query="kettle", user_id=user, as_of="", known_at="")
    assert [hit["id"] for hit in found["hits"]] == [told["id"]]
    day = await talk.call("memory_write", text="on a day", user_id=user, at="2026-03-01")
    read = await talk.call("memory_read", id=day["id"], user_id=user)
    assert read["valid_from"] == "2026-03-01"


async def test_a_document_is_given_as_text(talk: Talk, user: str) -> None:
    page = {"name": "owls.md", "text": "# Owls\n\nThe barn owl sleeps by day.\n"}
    told = await talk.call("memory_write", document=page, user_id=user)
    assert told["created"] is True
    [hit] = (await talk.call("memory_recall", query="barn owl", user_id=user))["hits"]
    assert (hit["name"], hit["type"]) == ("Owls", "Passage")
    said = await talk.refused("memory_write", document={"path": "/etc/hostname"}, user_id=user)
    assert "give text, name and media_type" in said
