"""Chat growth: the new messages of a chat, when a client sends its history again and again.

A chat continues a session of the same scopes if it begins as the session does, if its first
messages are the session's last ones, or if messages of both have the same ids. Then only the new
messages are written, into that session. If none is new, nothing is written. What stands before the
session's last messages is a summary of the others, and says nothing new. Instructions of an app
(role system) decide nothing: an app puts the date or what it has recalled into them, so they differ
each time. If the first message of a chat came alone before, it is a memory; then its turn replaces
the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from worlddb.errors import ConflictError
from worlddb.ingest.draft_parts import PartChanges
from worlddb.ingest.extractors import MEMORY, SESSION, USER, chat_name, same_text, turn_key
from worlddb.model.address import Id
from worlddb.model.inputs import APP, said_by
from worlddb.model.records import Draft, DraftNode, Message
from worlddb.store.interface import Reader
from worlddb.store.rows import BodyRow

MESSAGE_ID = "message_id"
"""Metadata key with the message id of a turn."""
SESSIONS_MAX = 8  # a chat that goes on is among the last ones; each is compared turn by turn
SUMMARIES_MAX = 2  # messages that an agent puts in place of the beginning: a summary, an answer
LATEST = 64  # newest memories of a scope, among which these sessions are searched


class ChatMovedError(ConflictError):
    """Another writer continued the same chat first; the write is tried again."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The session that a chat continues, and the messages that are new."""

    session: Id
    fresh: tuple[Message, ...]


Said = tuple[str, str, str | None]
"""Speaker, text and message id of a turn."""


def growth_of(
    reader: Reader, worlds: Sequence[int], now: int, messages: Sequence[Message]
) -> Growth | None:
    """Return the growth of a session that is directly in all given worlds; None for a new chat."""
    bodies = {body.row: body for body in _latest(reader, worlds, now) if body.type == "Session"}
    given: list[Said] = [(one.speaker, one.text, one.id) for one in messages]
    for row in sorted(bodies, reverse=True)[:SESSIONS_MAX]:
        nodes = reader.nodes(reader.children_of([row]))
        turns = [node for _, node in sorted(nodes.items()) if node.type == "Turn"]
        said: list[Said] = [
            (turn.name, turn.content, turn.metadata.get(MESSAGE_ID)) for turn in turns
        ]
        known = known_messages(said, given)
        if known is not None:
            fresh = [one for number, one in enumerate(messages) if number not in known]
            return Growth(Id(bodies[row].id), tuple(fresh))
    return None


def first_memory_of(
    reader: Reader,
    worlds: Sequence[int],
    now: int,
    first: Message,
    metadata: Mapping[str, Any],
) -> Id | None:
    """Return the memory that holds the first message of a chat, if that message came alone before.

    None if that memory has metadata, such as a pin, that the chat does not have.
    """
    for body in sorted(_latest(reader, worlds, now), reverse=True, key=lambda body: body.row):
        speaker = {"Memory": USER, "Turn": body.name}.get(body.type)
        if speaker == first.speaker and same_text(body.content, first.text):
            held = reader.nodes([body.row])[body.row].metadata
            is_kept = all(metadata.get(key) == value for key, value in held.items())
            return Id(body.id) if is_kept else None
    return None


def _latest(reader: Reader, worlds: Sequence[int], now: int) -> list[BodyRow]:
    """Return the latest live nodes directly in all given worlds.

    A session that has ended is not continued; the same messages are then written again.
    """
    rows = reader.placed.latest(worlds[:1], reader.head().nodes + 1, now, LATEST)
    for world in worlds[1:]:
        inside = set(reader.placed.latest([world], reader.head().nodes + 1, now, LATEST))
        rows = [row for row in rows if row in inside]
    bodies = reader.bodies(sorted(rows))
    return [body for body in bodies if body.valid_to is None or body.valid_to > now]


def known_messages(said: Sequence[Said], given: Sequence[Said]) -> set[int] | None:
    """Return the positions of given messages that need not be written; None if it is another chat.

    Instructions of an app are known if they stand before a known message, or in the session.
    """
    spoken = [at for at, one in enumerate(given) if said_by(one[0]) != APP]
    told = [one for one in said if said_by(one[0]) != APP]
    if not spoken or not told:
        return known_positions(said, given)
    found = known_positions(told, [given[at] for at in spoken])
    if found is None:
        return None
    known = {spoken[at] for at in found}
    last, texts = max(known), {one[1].strip() for one in said if said_by(one[0]) == APP}
    orders = set(range(len(given))).difference(spoken)
    return known | {at for at in orders if at < last or given[at][1].strip() in texts}


def known_positions(said: Sequence[Said], given: Sequence[Said]) -> set[int] | None:
    """Return the positions of given messages that a session has; None if it is another chat."""
    if not said:
        return None
    ids = {one[2] for one in said} - {None}
    if ids and any(one[2] in ids for one in given):
        return {at for at, one in enumerate(given) if one[2] in ids}
    if is_same_message(said[0], given[0]):
        return _in_order(said, given)
    for skip in range(SUMMARIES_MAX + 1):
        # A summary stands for something, and a single equal message may occur in any chat.
        if skip and (
            skip > len(given) or any(is_same_message(given[skip - 1], one) for one in said)
        ):
            break
        rest, held = given[skip:], len(said) - bool(skip)
        for size in range(min(held, len(rest)), 1, -1):
            if all(map(is_same_message, said[len(said) - size :], rest[:size])):
                return set(range(skip + size))
    places = range(len(said) - len(given) + 1) if len(given) > 1 else ()
    if any(all(map(is_same_message, said[at : at + len(given)], given)) for at in places):
        return set(range(len(given)))
    return None


def _in_order(said: Sequence[Said], given: Sequence[Said]) -> set[int]:
    """Return the positions of given messages that also follow each other in a session."""
    known: set[int] = set()
    place = 0
    for number, one in enumerate(given):
        found = next((at for at in range(place, len(said)) if is_same_message(said[at], one)), None)
        if found is not None:
            known.add(number)
            place = found + 1
    return known


def is_same_message(one: Said, other: Said) -> bool:
    """Return whether two messages are the same, by id or by speaker and text."""
    if one[2] is not None and other[2] is not None:
        return one[2] == other[2]
    return one[0] == other[0] and same_text(one[1], other[1])


def chat_draft(draft: Draft, messages: Sequence[Message], *, session: bool) -> Draft:
    """Return the draft of one message as a turn of its speaker; with `session`, in a session.

    A single message of the user that belongs to no chat is a memory, like a text.
    """
    if len(messages) != 1 or not draft.nodes or draft.nodes[0].key != MEMORY:
        return draft
    first = draft.nodes[0]
    if not session and messages[0].speaker == USER:
        return draft
    turn = replace(first, type="Turn", name=messages[0].speaker)
    if not session:
        return replace(draft, nodes=(turn, *draft.nodes[1:]))
    key = turn_key(0)
    around = DraftNode(
        key=SESSION,
        type="Session",
        name=chat_name(messages),
        created_at=first.created_at,
        valid_from=first.valid_from,
    )
    edges = (
        replace(
            edge,
            source=key if edge.source == MEMORY else edge.source,
            target=key if edge.target == MEMORY else edge.target,
        )
        for edge in draft.edges
    )
    nodes = (
        replace(node, parent=key) if node.parent == MEMORY else node for node in draft.nodes[1:]
    )
    turn = replace(turn, key=key, parent=SESSION)
    return replace(draft, nodes=(around, turn, *nodes), edges=tuple(edges))


def changes_of_turns(
    draft: Draft, messages: Sequence[Message], first_memory: Id | None
) -> PartChanges:
    """Return the metadata with the message ids, by the keys of the turns.

    The first turn replaces the memory `first_memory` that holds the first message.
    """
    keys = {node.key for node in draft.nodes}
    return PartChanges(
        replaces={} if first_memory is None else {turn_key(0): first_memory},
        metadata={
            turn_key(number): {MESSAGE_ID: message.id}
            for number, message in enumerate(messages)
            if message.id is not None and turn_key(number) in keys
        },
    )


def without_session(draft: Draft) -> Draft:
    """Return a draft without its session, which is in the store under the same key."""
    return replace(draft, nodes=tuple(node for node in draft.nodes if node.key != SESSION))
