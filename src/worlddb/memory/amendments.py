"""Amendments: a memory is replaced by another text, wherever it lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.ingest.extractors import messages_of, same_text
from worlddb.ingest.write_request import Target, WriteRequest
from worlddb.memory.memory_marks import Marks, marks_of
from worlddb.memory.results import Written
from worlddb.memory.scope_view import CallerScopes, find_memory, scopes_of, successors
from worlddb.memory.writes import MemoryWriter, further_bounds, world_of
from worlddb.model.address import Id
from worlddb.model.drafts import Extractor, Message
from worlddb.model.inputs import Instant, encode_metadata, from_micros, to_micros
from worlddb.model.origin import Origin, lowered
from worlddb.model.records import DOCUMENT, NOW, WHOLES, Groups, Node
from worlddb.store.interface import Reader
from worlddb.view.visibility import View, moment_of

AROUND = "around"
"""The key by which a draft means the world that an amended memory lies in."""


@dataclass(frozen=True, slots=True)
class AmendDestination:
    """Wherever a memory lies that is amended."""

    memory: Id
    caller: CallerScopes
    reach: Groups

    def locate(self, reader: Reader) -> Target:
        """Return the worlds of the memory on this snapshot."""
        moment = moment_of(reader, NOW, self.caller.clock())
        view = self.caller.view(reader, self.reach, moment, ended=True)
        row, old = find_memory(view, self.memory)
        refuse_ended(view, row, old)
        lives, around, others = _homes(view, row)
        home = _own_home(view, self.caller.bounds, row, lives)
        guests: set[Id] = set()
        if self.caller.bounds and others:
            from worlddb.memory.scope_grants import guest_worlds

            now = to_micros(moment.now, "now")
            guests, closed = guest_worlds(reader, self.caller, others, now)
            others = [world for world in others if world not in closed]
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=reader.node_row(home),
            memberships=tuple(others),
            name_worlds=tuple(one for one in (lives, *others) if one not in {home, *guests}),
            within=further_bounds(reader, self.caller.bounds, home),
            anchors={AROUND: around},
        )


def _own_home(view: View, bounds: Groups, row: int, home: Id) -> Id:
    """Return where the names in a text about a memory belong: never outside the bounds.

    A shared memory may live with another user, whose names and claims are not the caller's.
    """
    reader = view.reader
    own = [world_of(reader, name)[0] for group in bounds for name in group]
    if not own or home in own:
        return home
    rows = {number: world for world in own if (number := reader.node_row(world)) is not None}
    return next(rows[number] for number in rows if view.keep_inside({row}, [number]))


def _homes(view: View, row: int) -> tuple[Id, Id, list[Id]]:
    """Return where names in a memory's text belong, the world it lies in, and its other worlds."""
    reader, moment = view.reader, view.moment
    parent = reader.parents([row])[row]
    assert parent is not None
    around = reader.world(parent)
    above = (
        around
        if around.type not in WHOLES or around.parent is None
        else reader.world(around.parent)
    )
    holders = reader.edges_at([row], "in", ("contains",))
    others = [item.edge.source for item in holders if moment.holds(item.edge)]
    return Id(above.id), Id(around.id), others


def refuse_ended(view: View, row: int, node: Node, whole: bool = False) -> None:
    """Refuse to amend what has ended, or what is more than one text; with `whole`, it may be.

    Raises:
        ConflictError: the memory has ended, or it is a session or a document.
    """
    if node.type in WHOLES and not whole:
        part, kind = WHOLES[node.type].lower(), node.type.lower()
        raise ConflictError(f"{node.id.short} is a whole {kind}; amend one of its {part}s")
    if view.moment.holds(node):
        return
    by = ", ".join(ident.short for ident in successors(view, row))
    reason = f"was superseded by {by}; amend that one" if by else "was retired; write a new memory"
    raise ConflictError(f"memory {node.id.short} {reason}")


def amended(
    writer: MemoryWriter,
    id: bytes | str,
    text: str,
    *,
    at: Instant | None,
    source: str | Sequence[str] | None,
    marks: Mapping[str, Any],
    extractor: Extractor | str | None,
    scope: Mapping[str, Any],
    origin: Origin | None,
) -> Written:
    """Replace a memory by another text; see `Memory.amend`."""
    origin = lowered(origin, writer.origin)
    if not isinstance(text, str):
        raise InvalidInputError(f"text: give text, not {type(text).__name__}")
    messages_of(text)  # An empty text is refused, as by `write`.
    (message,), secrets = writer.without_secrets([Message(text=text)], scope)
    text = message.text
    (source, marks), more = writer.without_secret_values((source, marks), scope)
    secrets = tuple(dict.fromkeys((*secrets, *more)))
    given = marks_of(now=writer.engine.clock(), **marks)
    encode_metadata(given.metadata, writer.engine.limits)
    reach = writer.scopes.reach(scope)
    with writer.scopes.viewing(reach, ended=True) as view:
        row, old = find_memory(view, id)
        destination = AmendDestination(old.id, writer.scopes, reach)
        target = destination.locate(view.reader)
        names = scopes_of(view.reader, [row], view.moment)[row]
        last = view.reader.head().time
    if same_text(text, old.content) and not _outlasts(given, old):
        return writer.marked(old, names, given)
    speaker = {"Turn": old.name, "Passage": DOCUMENT}.get(old.type, "user")
    read = writer.engine.ingestion.draft(
        [Message(text=text, speaker=speaker)],
        _beginning(writer, old, at, last),
        writer.extractor if extractor is None else extractor,
    )
    draft = read.draft
    if given.expires is None and old.valid_to is not None:
        given = replace(given, expires=to_micros(old.valid_to, "valid_to"))
    draft = given.ending(draft)
    origins = tuple(dict.fromkeys((*old.origins, *((origin,) if origin else ()))))
    parent = None if target.anchors[AROUND] == target.home else AROUND
    first = replace(draft.nodes[0], type=old.type, name=old.name, parent=parent)
    request = WriteRequest(
        draft=replace(draft, nodes=(first, *draft.nodes[1:])),
        memory=first.key,
        destination=destination,
        target=target,
        actor=writer.actor,
        source=source,
        metadata={**old.metadata, **(given.metadata or {})},
        waiting=read.waiting,
        supersede=writer.supersede,
        replaces=old.id,
        # A correction repeats most of the text, so it is trusted no more than that.
        origins=dict.fromkeys((one.key for one in draft.nodes), origins) if origins else {},
        caller=origin,
    )
    done = writer.commit(writer.engine.ingestion.plan(request), names)
    return replace(done, secrets=secrets) if secrets else done


def _outlasts(given: Marks, old: Node) -> bool:
    """Return whether a memory shall be true for longer than it is."""
    if given.expires is None or old.valid_to is None:
        return False
    return given.expires > to_micros(old.valid_to, "valid_to")


def _beginning(writer: MemoryWriter, old: Node, at: Instant | None, last: int) -> Instant:
    """Return when an amendment begins: never before the memory that it supersedes.

    Now is always after the `last` commit, also after a clock was set back.

    Raises:
        InvalidInputError: `at` is earlier.
    """
    began = to_micros(old.valid_from, "valid_from")
    if at is None:
        return from_micros(max(writer.engine.clock(), began, last + 1))
    if to_micros(at, "at") < began:
        raise InvalidInputError(
            f"at: memory {old.id.short} began at {old.valid_from.isoformat()}; give that time "
            "or a later one"
        )
    return at
