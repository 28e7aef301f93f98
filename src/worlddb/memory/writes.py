"""Memory writes: write and amend. Each call is one commit, or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from worlddb.engine import Engine
from worlddb.errors import ConflictError, InvalidInputError
from worlddb.ingest.chat_growth import (
    ChatMovedError,
    Growth,
    begun_alone,
    changes_of_turns,
    chat_draft,
    growth_of,
    without_session,
)
from worlddb.ingest.extraction_queue import Waiting
from worlddb.ingest.extractors import SESSION as CHAT_KEY
from worlddb.ingest.extractors import messages_of, same_text
from worlddb.ingest.ingestion import brought_in, ended_by, is_immediate
from worlddb.ingest.memory_parts import PartChanges
from worlddb.ingest.plan import Outcome, WritePlan
from worlddb.ingest.stated_names import Aliases, StatedNames, stated_names
from worlddb.ingest.text_origins import QUARANTINE
from worlddb.ingest.write_request import (
    Target,
    WriteRequest,
    check_key,
    digest_of_messages,
    find_key,
)
from worlddb.memory.memory_marks import NO_MARKS, Marks, marks_of
from worlddb.memory.results import Linked, Written
from worlddb.memory.scope_view import (
    CallerScopes,
    find_memory,
    generations,
    scopes_of,
    successors,
)
from worlddb.model.address import Id
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import Instant, encode_metadata, from_micros, to_micros
from worlddb.model.origin import Origin, at_most, check_origin, lowered
from worlddb.model.records import DOCUMENT, NOW, WHOLES, Commit, Groups, Node, ScopeName
from worlddb.store.interface import Reader
from worlddb.view.visibility import View, moment_of

MAYBE_SECRET = re.compile(
    r"(?i)\d(?:[ -]?\d){12}|[\w-]{20}|passw|passphrase|\bpwd|secret|token|credential|[_ -]key"
    r"|bearer|://"
)
"""A text without any of these has no secret of a known form (`trust_settings.py`)."""
CHAT_TRIES_MAX = 5  # Writers of one chat at the same time; each turn one of them gets through.
AROUND = "around"
"""The key by which a draft means the world that an amended memory lies in."""


@dataclass(frozen=True, slots=True)
class ScopeDestination:
    """Scopes by name: they are made if they are new, and looked for again if one was purged."""

    scopes: tuple[ScopeName, ...]
    bounds: Groups
    key: str | None
    digest: str
    chat: tuple[Message, ...] = ()
    growth: Growth | None = None
    caller: CallerScopes | None = None
    strangers: tuple[ScopeName, ...] = ()

    def granted(self, reader: Reader) -> list[ScopeName]:
        """Return the scopes that only a grant opens, if it still stands on this snapshot."""
        if self.caller is None or not self.strangers:
            return []
        from worlddb.memory.scope_grants import admitted

        now = max(self.caller.clock(), reader.head().time)
        return admitted(reader, self.caller, self.strangers, now)

    def grown(self, reader: Reader, now: int) -> Growth | None:
        """Return which session of the scopes a chat continues, and what is new in it."""
        worlds = self._worlds(reader) if self.chat else []
        return growth_of(reader, worlds, now, self.chat) if worlds else None

    def begun(self, reader: Reader, now: int, metadata: Mapping[str, Any]) -> Id | None:
        """Return the memory that the first message of a new chat was written as, alone."""
        worlds = self._worlds(reader) if len(self.chat) > 1 and self.growth is None else []
        return begun_alone(reader, worlds, now, self.chat[0], metadata) if worlds else None

    def _worlds(self, reader: Reader) -> list[int]:
        """Return the worlds of the scopes; none if one of them is new."""
        rows = [_world(reader, name)[2] for name in self.scopes]
        return [] if None in rows else [row for row in rows if row is not None]

    def goes_on(self, messages: Sequence[Message]) -> bool:
        """Return whether one message is the begin or the next turn of a chat that has a name."""
        has_run = any(name.kind == "run" for name in self.scopes)
        is_named = has_run or messages[0].id is not None
        return bool(self.chat) and (self.growth is not None or is_named)

    def locate(self, reader: Reader) -> Target:
        """Return where the scopes are on this snapshot."""
        worlds = {name: _world(reader, name) for name in self.scopes}
        home, _, row = worlds[self.scopes[0]]
        within = _further_bounds(reader, self.bounds, home)
        key = written = None
        if self.key is not None:
            bounds = [world for group in within for world in group]
            key, written = find_key(reader, self.key, home, row, self.digest, bounds)
        others = tuple(world for world, _, _ in worlds.values() if world != home)
        # By a grant only the memory is seen there, not the names in it; and it is a memory of its
        # own, so that no text which is trusted more elsewhere takes its place.
        guests = [worlds[name][0] for name in self.granted(reader)]
        anchors = {} if self.growth is None else {CHAT_KEY: self.growth.session}
        if self.chat and self.grown(reader, reader.head().time) != self.growth:
            raise ChatMovedError("another writer continued this chat; write it again")
        return Target(
            commit=reader.head().seq,
            home=home,
            home_row=row,
            scopes={name: number for name, (_, number, row) in worlds.items() if row is None},
            memberships=others,
            name_worlds=tuple(world for world in others if world not in guests),
            within=[*within, *([world] for world in guests)],
            anchors=anchors,
            key=key,
            written=written,
            is_shared=self.scopes[0].kind in ("agent", "app"),
        )


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
        _refuse_ended(view, row, old)
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
            within=_further_bounds(reader, self.caller.bounds, home),
            anchors={AROUND: around},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWriter:
    """Writes the memories of one caller."""

    engine: Engine
    scopes: CallerScopes
    actor: str
    extractor: Extractor | str | None
    recluster: Literal["later", "now", "off"]
    supersede: bool
    origin: Origin | None = None

    def write(
        self,
        messages: list[Message],
        *,
        at: Instant | None,
        source: str | Sequence[str] | None,
        marks: Mapping[str, Any],
        names: str | Sequence[str] | None,
        aliases: Aliases | None,
        idempotency_key: str | None,
        extractor: Extractor | str | None,
        scope: Mapping[str, Any],
        is_chat: bool = False,
        origin: Origin | None = None,
    ) -> Written:
        """Remember messages; see `Memory.write`."""
        if origin is not None or self.origin is not None:
            origin = lowered(origin, self.origin)
        messages, secrets = self.without_secrets(messages, scope)
        beside, more = self.without_secret_values((source, marks, names, aliases), scope)
        source, marks, names, aliases = beside
        secrets = tuple(dict.fromkeys((*secrets, *more)))
        given, stated = self.told(marks, names, aliases)
        destination = self.destination(scope, idempotency_key, messages)
        origin = self.origin_in(destination, origin)
        # With a key of its own, a single message stands by itself: the caller knows what is new.
        if is_chat and (idempotency_key is None or len(messages) > 1):
            destination = replace(destination, chat=tuple(messages))
        if at is not None:
            to_micros(at, "at")
        for left in reversed(range(CHAT_TRIES_MAX)):
            try:
                done = self._write_new(
                    destination,
                    messages,
                    at=at,
                    source=source,
                    given=given,
                    stated=stated,
                    extractor=extractor,
                    is_chat=is_chat,
                    origin=origin,
                )
                return replace(done, secrets=secrets) if secrets else done
            except ChatMovedError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def without_secrets(
        self, messages: list[Message], scope: Mapping[str, Any]
    ) -> tuple[list[Message], tuple[str, ...]]:
        """Return messages as the rule of the scope wants them, and the kinds of their secrets."""
        if not any(MAYBE_SECRET.search(message.text) for message in messages):
            return messages, ()
        from worlddb.memory.trust_settings import checked

        return checked(self, messages, scope)

    def without_secret_values(
        self, values: tuple[Any, ...], scope: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Return what stands beside a text as the rule of the scope wants it, and the kinds."""
        if not MAYBE_SECRET.search(repr(values)):
            return values, ()
        from worlddb.memory.trust_settings import checked_values

        return checked_values(self, values, scope)

    def destination(
        self, scope: Mapping[str, Any], key: str | None, said: Sequence[Message]
    ) -> ScopeDestination:
        """Return where a write goes that names scopes and says something, with a key or without."""
        return ScopeDestination(
            tuple(name for group in self.scopes.written(scope) for name in group),
            self.scopes.bounds,
            None if key is None else check_key(key),
            "" if key is None else digest_of_messages(said),
            caller=self.scopes,
            strangers=self.scopes.strangers(scope),
        )

    def origin_in(self, destination: ScopeDestination, origin: Origin | None) -> Origin | None:
        """Return who brings in a write: by a grant, nobody who is trusted in full."""
        if not destination.strangers:
            return origin
        from worlddb.memory.scope_grants import BY_GRANT

        with self.engine.store.read() as reader:
            return at_most(BY_GRANT, origin) if destination.granted(reader) else origin

    def told(
        self,
        marks: Mapping[str, Any],
        names: str | Sequence[str] | None,
        aliases: Aliases | None,
    ) -> tuple[Marks, StatedNames | None]:
        """Return the marks and the stated names of a write after checking them."""
        is_marked = any(one is not None and one is not False for one in marks.values())
        given = marks_of(now=self.engine.clock(), **marks) if is_marked else NO_MARKS
        encode_metadata(given.metadata, self.engine.limits)
        is_named = names is not None or aliases is not None
        return given, stated_names(names, aliases) if is_named else None

    def _write_new(
        self,
        destination: ScopeDestination,
        messages: list[Message],
        *,
        at: Instant | None,
        source: str | Sequence[str] | None,
        given: Marks,
        stated: StatedNames | None,
        extractor: Extractor | str | None,
        is_chat: bool,
        origin: Origin | None,
        released: Node | None = None,
    ) -> Written:
        """Write what is new of some messages: all of them, or what a chat has grown by."""
        ingestion = self.engine.ingestion
        chosen = self.extractor if extractor is None else extractor
        told = {} if released is None else {released.id: {QUARANTINE: "released"}}
        parts = PartChanges(told=told) if told else None

        def request() -> WriteRequest:
            draft, waiting = ingestion.draft(messages, at, chosen, last)
            if is_chat:
                draft = chat_draft(draft, messages, session=destination.goes_on(messages))
            draft = draft if stated is None else stated.added_to(draft)
            draft = draft if given.expires is None else given.ending(draft)
            return WriteRequest(
                draft=draft if growth is None else without_session(draft),
                memory=draft.nodes[0].key,
                destination=destination,
                target=target,
                actor=self.actor,
                source=source,
                metadata=given.metadata,
                parts=changes_of_turns(draft, messages, begun) if is_chat else parts,
                waiting=waiting,
                supersede=self.supersede,
                origins=brought_in(draft, messages, origin),
                caller=origin if released is None else None,
                replaces=None if released is None else released.id,
                released=released is not None,
                unsaid=unsaid,
            )

        unsaid: tuple[int, str] | None = None
        with ingestion.snapshot() as reader:
            growth = destination.grown(reader, reader.head().time)
            destination = replace(destination, growth=growth)
            begun = destination.begun(reader, reader.head().time, given.metadata or {})
            target = destination.locate(reader)
            messages = messages if growth is None else list(growth.fresh)
            if not destination.chat:
                messages, unsaid = ingestion.spelled_as_known(reader, messages, target)
            last = reader.head().time
            is_new = target.written is None and bool(messages)
            plan = ingestion.plan(request(), reader) if is_new and is_immediate(chosen) else None
        if target.written is not None:
            return self.known(target.written)
        if growth is not None and not growth.fresh:
            return self.known(growth.session)
        done = self.commit(plan or ingestion.plan(request()), destination.scopes)
        return replace(done, scopes=destination.scopes) if destination.strangers else done

    def release(self, node: Node, reach: Groups) -> Written:
        """Write what waits in quarantine as a successor that holds from now on."""
        with self.scopes.viewing(reach, ended=True) as view:
            row = view.reader.node_row(node.id)
            assert row is not None
            names = scopes_of(view.reader, [row], view.moment)[row]
        kept = {key: value for key, value in node.metadata.items() if key != QUARANTINE}
        return self._write_new(
            ScopeDestination(tuple(names), self.scopes.bounds, None, ""),
            [Message(text=node.content)],
            at=None,
            source=node.provenance or None,
            given=Marks(metadata={**kept, QUARANTINE: "released"}, expires=None),
            stated=None,
            extractor=None,
            is_chat=False,
            origin=check_origin(node.origin),
            released=node,
        )

    def amend(
        self,
        id: bytes | str,
        text: str,
        *,
        at: Instant | None,
        source: str | Sequence[str] | None,
        marks: Mapping[str, Any],
        extractor: Extractor | str | None,
        scope: Mapping[str, Any],
        origin: Origin | None = None,
    ) -> Written:
        """Replace a memory by another text; see `Memory.amend`."""
        origin = lowered(origin, self.origin)
        if not isinstance(text, str):
            raise InvalidInputError(f"text: give text, not {type(text).__name__}")
        messages_of(text)  # An empty text is refused, as by `write`.
        (message,), secrets = self.without_secrets([Message(text=text)], scope)
        text = message.text
        (source, marks), more = self.without_secret_values((source, marks), scope)
        secrets = tuple(dict.fromkeys((*secrets, *more)))
        given = marks_of(now=self.engine.clock(), **marks)
        encode_metadata(given.metadata, self.engine.limits)
        reach = self.scopes.reach(scope)
        with self.scopes.viewing(reach, ended=True) as view:
            row, old = find_memory(view, id)
            destination = AmendDestination(old.id, self.scopes, reach)
            target = destination.locate(view.reader)
            names = scopes_of(view.reader, [row], view.moment)[row]
            last = view.reader.head().time
        if same_text(text, old.content) and not self._outlasts(given, old):
            return self._marked(old, names, given)
        speaker = {"Turn": old.name, "Passage": DOCUMENT}.get(old.type, "user")
        draft, waiting = self.engine.ingestion.draft(
            [Message(text=text, speaker=speaker)],
            self._beginning(old, at, last),
            self.extractor if extractor is None else extractor,
        )
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
            actor=self.actor,
            source=source,
            metadata={**old.metadata, **(given.metadata or {})},
            waiting=waiting,
            supersede=self.supersede,
            replaces=old.id,
            # A correction repeats most of the text, so it is trusted no more than that.
            origins=dict.fromkeys((one.key for one in draft.nodes), origins) if origins else {},
            caller=origin,
        )
        done = self.commit(self.engine.ingestion.plan(request), names)
        return replace(done, secrets=secrets) if secrets else done

    def mark(self, id: bytes | str, marks: Marks, scope: Mapping[str, Any]) -> None:
        """Mark a memory; see `Memory.pin`."""
        with self.scopes.viewing(self.scopes.reach(scope), ended=True) as view:
            row, old = find_memory(view, id)
            _refuse_ended(view, row, old, whole=True)
        self._marked(old, (), marks)

    def _outlasts(self, given: Marks, old: Node) -> bool:
        """Return whether a memory shall be true for longer than it is."""
        if given.expires is None or old.valid_to is None:
            return False
        return given.expires > to_micros(old.valid_to, "valid_to")

    def _marked(self, old: Node, names: Sequence[ScopeName], given: Marks) -> Written:
        """Give a memory that stays as it is its marks; its end may only come earlier."""
        with self.engine.ingestion.transact(self.actor, self.origin) as tx:
            if given.metadata:
                tx.add_metadata(old.id, given.metadata)
            if given.expires is not None:
                tx.retire(old.id, at=from_micros(given.expires))
        return self._written(old.id, names, commit=tx.commit)

    def commit(self, plan: WritePlan | WriteRequest, names: Sequence[ScopeName]) -> Written:
        """Carry out a plan and tell what that did."""
        ingestion = self.engine.ingestion
        request = plan.asked if isinstance(plan, WritePlan) else plan
        outcome, commit, target = ingestion.commit(plan)
        if target.written is not None:
            return self.known(target.written)
        ingestion.look_again(target.home, outcome.created, self.recluster)
        memory = outcome.ids[request.memory]
        return self._written(memory, names, request.draft, outcome, commit, request.waiting)

    def _home(self, names: Sequence[ScopeName]) -> ScopeName | None:
        """Return the first of some scopes that is the caller's own; None without bounds."""
        own = {scope for group in self.scopes.bounds for scope in group}
        return next((name for name in names if name in own), None)

    def _beginning(self, old: Node, at: Instant | None, last: int) -> Instant:
        """Return when an amendment begins: never before the memory that it supersedes.

        Now is always after the `last` commit, also after a clock was set back.

        Raises:
            InvalidInputError: `at` is earlier.
        """
        began = to_micros(old.valid_from, "valid_from")
        if at is None:
            return from_micros(max(self.engine.clock(), began, last + 1))
        if to_micros(at, "at") < began:
            raise InvalidInputError(
                f"at: memory {old.id.short} began at {old.valid_from.isoformat()}; give that time "
                "or a later one"
            )
        return at

    def known(self, memory: Id) -> Written:
        """Return the result for a memory that the same idempotency key wrote before."""
        with self.scopes.viewing(()) as view:
            row = view.reader.node_row(memory)
            assert row is not None
            names = scopes_of(view.reader, [row], view.moment)[row]
        return self._written(memory, names)

    def _written(
        self,
        memory: Id,
        names: Sequence[ScopeName],
        draft: Draft | None = None,
        outcome: Outcome | None = None,
        commit: Commit | None = None,
        waiting: Waiting | None = None,
    ) -> Written:
        """Return what a write did; without a draft and its outcome, nothing."""
        outcome = outcome or Outcome()
        created = set(outcome.created)
        drafted = draft.nodes if draft is not None else ()
        linked = [node for node in drafted if node.resolvable and node.key in outcome.ids]
        shown, root = self.scopes.own_commit(commit, self._home(names))
        return Written(
            id=memory,
            created=memory in created,
            scopes=tuple(filter(self.scopes.may_name, names)),
            entities=tuple(
                Linked(
                    id=outcome.ids[node.key],
                    type=node.type,
                    name=node.name,
                    created=outcome.ids[node.key] in created,
                )
                for node in linked
            ),
            proposals=self.engine.ingestion.proposals_of(outcome),
            superseded=ended_by(commit),
            commit=shown,
            root_state=root,
            pending=None if waiting is None else waiting.error,
            left_out=tuple(outcome.left_out),
        )


def _world(reader: Reader, scope: ScopeName) -> tuple[Id, int, int | None]:
    """Return a scope's present world: its id, its generation, and its row if it is made."""
    rows = generations(reader, scope)
    if not rows or reader.closed_by(rows[-1:]):
        return scope.id(len(rows)), len(rows), None
    generation = len(rows) - 1
    return scope.id(generation), generation, rows[-1]


def _further_bounds(reader: Reader, bounds: Groups, home: Id) -> list[list[Id]]:
    """Return the worlds of those bounds that the home is not one of."""
    groups = [[_world(reader, name)[0] for name in group] for group in bounds]
    return [group for group in groups if home not in group]


def _own_home(view: View, bounds: Groups, row: int, home: Id) -> Id:
    """Return where the names in a text about a memory belong: never outside the bounds.

    A shared memory may live with another user, whose names and claims are not the caller's.
    """
    reader = view.reader
    own = [_world(reader, name)[0] for group in bounds for name in group]
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


def _refuse_ended(view: View, row: int, node: Node, whole: bool = False) -> None:
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
