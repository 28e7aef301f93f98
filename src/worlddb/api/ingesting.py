"""Ingesting: text to memory. Extract, resolve, write, and look again at the neighbourhood.

    text ──extract──▶ draft ──resolve──▶ verdicts ──write──▶ commit ──▶ recluster

Extraction and tie-breaking, which may ask a person or a model, end before the transaction begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from worlddb.api.later import Reclustered
from worlddb.api.opened import Opened
from worlddb.errors import InvalidInputError
from worlddb.model.address import ROOT_ID
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.id import Id
from worlddb.model.instant import Instant, from_micros, to_micros
from worlddb.model.values import NOW, Commit, Plain, Proposal
from worlddb.read import identity, lookup
from worlddb.read.moment import moment_of
from worlddb.store.protocol import ROOT_ROW
from worlddb.write.ingest import Guess, Outcome, propose, write_draft
from worlddb.write.transaction import DEFAULT_ACTOR, transact

if TYPE_CHECKING:
    from worlddb.read.resolving import Resolving
    from worlddb.resolve.settings import ResolverSettings
    from worlddb.resolve.values import Outcome as Verdict
    from worlddb.resolve.values import Tiebreaker
    from worlddb.store.protocol import Reader

Input = str | Message | Sequence[Message | Mapping[str, Any]]

RECLUSTER_ACTOR = "recluster"
NEIGHBOURS_MAX = 200
HOPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested(Plain):
    """What an ingest did: the memories, what was new, used again and proposed, and the commit.

    `commit` is None if everything was there already.
    """

    memories: tuple[Id, ...]
    created: tuple[Id, ...]
    reused: tuple[Id, ...]
    proposals: tuple[Proposal, ...]
    commit: Commit | None


class Ingesting(Opened):
    """The part of WorldDB that takes text in."""

    def ingest(
        self,
        text_or_messages: Input,
        *,
        world: bytes | str | None = None,
        extractor: Extractor | str | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        actor: str = DEFAULT_ACTOR,
        tiebreaker: Tiebreaker | None = None,
        resolver: ResolverSettings | None = None,
        recluster: Literal["later", "now", "off"] = "later",
    ) -> Ingested:
        """Remember a text or messages inside `world`, as one commit; say what that did.

        The extractor ("rules" by default, or "verbatim", or your own) makes a draft of it. Names
        are resolved: an exact match is used again, a likely one is proposed with its evidence and
        never merged. The same text again in the same world is the same memory with one source
        more. Afterwards the neighbourhood of what is new is resolved once more (`recluster`): by
        default in the background, which `db.wait()` waits for and `db.reclustered` tells about.

        Raises:
            InvalidInputError: nothing to remember, or an argument is wrong.
            NotFoundError: no such world.
            RejectedError: an edge handler refused.
            StorageError, ConflictError: the store cannot be written.
        """
        if recluster not in ("later", "now", "off"):
            raise InvalidInputError(f"recluster {recluster!r}: use 'later', 'now' or 'off'")
        when = self._clock() if at is None else to_micros(at, "at")
        messages = messages_of(text_or_messages)
        draft = _extractor(extractor).extract(messages, from_micros(when))
        found, outcome, commit = self._write(draft, world, source, actor, tiebreaker, resolver)
        if outcome.created and recluster != "off":
            nodes = tuple(outcome.created)

            def again() -> list[Proposal]:
                return self.recluster(nodes, world=found, resolver=resolver)

            if recluster == "later":
                self._later.put(nodes, again)
            else:
                again()
        return self._told(draft, outcome, commit)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the work in the background is done; return whether it was in time."""
        return self._later.wait(timeout_s)

    @property
    def reclustered(self) -> list[Reclustered]:
        """What the last hundred looks at a neighbourhood in the background found."""
        return list(self._later.done)

    def _write(
        self,
        draft: Draft,
        world: bytes | str | None,
        source: str | Sequence[str] | None,
        actor: str,
        tiebreaker: Tiebreaker | None,
        settings: ResolverSettings | None,
    ) -> tuple[Id, Outcome, Commit | None]:
        self._catch_up()
        with self._store.read() as reader:
            inside = _world_id(reader, world)
            seen = reader.head().seq
            known, guesses = _sorted(
                self._resolving(reader, inside, settings, tiebreaker), draft, inside
            )
        with transact(
            self._store, self._registry, actor=actor, bulk=False, limits=self._limits
        ) as tx:
            if tx.follows != seen:
                # Somebody else has written meanwhile; nobody can from here on.
                with self._store.read() as reader:
                    again = self._resolving(reader, inside, settings, None)
                    known = _sorted(again, draft, inside)[0] | known
            outcome = write_draft(
                tx, draft, world=inside, known=known, guesses=guesses, source=source
            )
        return inside, outcome, tx.commit

    def recluster(
        self,
        ids: Sequence[bytes | str],
        *,
        world: bytes | str | None = None,
        resolver: ResolverSettings | None = None,
    ) -> list[Proposal]:
        """Resolve the named nodes within two hops of `ids` once more; propose what is found.

        At most 200 nodes are looked at. A pair that was proposed before is not proposed again.

        Raises:
            InvalidInputError, NotFoundError: no such node or world.
            StorageError, ConflictError: the store cannot be written.
        """
        self._catch_up()
        with self._store.read() as reader:
            inside = _world_id(reader, world)
            rows = {lookup.find(reader, ident, "nodes") for ident in ids}
            resolving = self._resolving(reader, inside, resolver, None)
            found = list(_new_guesses(resolving, _neighbourhood(resolving, rows)))
        if not found:
            return []
        outcome = Outcome()
        with transact(
            self._store, self._registry, actor=RECLUSTER_ACTOR, bulk=False, limits=self._limits
        ) as tx:
            for ident, guess in found:
                propose(tx, ident, guess, outcome)
        return self._proposals(outcome)

    def _catch_up(self) -> None:
        """Bring the index of names and contents to the last commit."""
        from worlddb.index.lookups import Lookups
        from worlddb.resolve.keys import block_keys

        Lookups(self._store, block_keys).catch_up()

    def _resolving(
        self,
        reader: Reader,
        world: bytes,
        settings: ResolverSettings | None,
        tiebreaker: Tiebreaker | None,
    ) -> Resolving:
        from worlddb.read.find import View
        from worlddb.read.resolving import Resolving
        from worlddb.resolve.resolver import Resolver
        from worlddb.resolve.settings import DEFAULT_SETTINGS

        chosen = settings or DEFAULT_SETTINGS
        row = reader.node_row(world)
        moment = moment_of(reader, NOW, self._clock())
        worlds = [ROOT_ROW if row is None else row]
        view = View(reader, moment, worlds=worlds, members=True, ended=False)
        return Resolving(reader, view, Resolver(chosen, tiebreaker=tiebreaker), chosen)

    def _proposals(self, outcome: Outcome) -> list[Proposal]:
        with self._store.read() as reader:
            moment = moment_of(reader, NOW, self._clock())
            wanted = set(outcome.proposed)
            found = identity.proposals(reader, None, moment)
        return [proposal for proposal in found if proposal.edge in wanted]

    def _told(self, draft: Draft, outcome: Outcome, commit: Commit | None) -> Ingested:
        says = [node.key for node in draft.nodes if not node.resolvable]
        return Ingested(
            memories=tuple(outcome.ids[key] for key in says),
            created=tuple(outcome.created),
            reused=tuple(outcome.reused),
            proposals=tuple(self._proposals(outcome)) if outcome.proposed else (),
            commit=commit,
        )


def _world_id(reader: Reader, world: bytes | str | None) -> Id:
    """Return the id of the world that was given; the root's if none was."""
    if world is None:
        return ROOT_ID
    return Id(reader.world(lookup.find(reader, world, "nodes")).id)


def messages_of(given: Input) -> list[Message]:
    """Return what was given as messages.

    Raises:
        InvalidInputError: it is neither text nor messages, or says nothing.
    """
    if isinstance(given, str):
        given = Message(text=given)
    items = [given] if isinstance(given, Message) else given
    if isinstance(items, Mapping) or not isinstance(items, Sequence) or isinstance(items, bytes):
        raise InvalidInputError(f"give text or a list of messages, not {given!r:.100}")
    messages = [item if isinstance(item, Message) else _message(item) for item in items]
    if not any(message.text.strip() for message in messages):
        raise InvalidInputError("there is no text to remember")
    return [message for message in messages if message.text.strip()]


def _message(item: Mapping[str, Any]) -> Message:
    """Return a chat message (`role`, `content`) or one in our own words (`speaker`, `text`)."""
    if not isinstance(item, Mapping):
        raise InvalidInputError(f"a message is a mapping with role and content, not {item!r:.100}")
    text = item.get("text", item.get("content"))
    speaker = item.get("speaker", item.get("role", "user"))
    if not isinstance(text, str) or not isinstance(speaker, str):
        raise InvalidInputError(f"a message has a role and text as its content, not {item!r:.100}")
    at = item.get("at")
    return Message(text=text, speaker=speaker, at=None if at is None else _time(at))


def _time(at: Instant) -> datetime:
    return from_micros(to_micros(at, "at"))


def _extractor(given: Extractor | str | None) -> Extractor:
    if given is None or isinstance(given, str):
        from worlddb.extract import extractor_named

        return extractor_named(given or "rules")
    return given


def _sorted(
    resolving: Resolving, draft: Draft, world: bytes
) -> tuple[dict[str, Id], dict[str, list[Guess]]]:
    """Return which drafted nodes are there already, and what the others may be the same as."""
    known: dict[str, Id] = {}
    guesses: dict[str, list[Guess]] = {}
    row = resolving.reader.node_row(world)
    for node in draft.nodes:
        if node.resolvable:
            same, maybe = _judged(resolving, resolving.verdict(node))
            if same is not None:
                known[node.key] = same
            else:
                guesses[node.key] = maybe
        elif node.content and node.parent is None and row is not None:
            found = resolving.same_content(node, row)
            if found is not None:
                known[node.key] = Id(resolving.reader.world(found).id)
    return known, guesses


def _judged(resolving: Resolving, verdict: Verdict) -> tuple[Id | None, list[Guess]]:
    """Return the node to use again, or the guesses to propose.

    Several nodes that bear the very name are one only if they were accepted as one.
    """
    reader = resolving.reader
    same = sorted(int(str(match.option.key)) for match in verdict.matches if match.reuses)
    if same and set(same) <= identity.accepted_class(reader, same[:1], resolving.view.moment):
        return Id(reader.world(same[0]).id), []
    return None, [
        Guess(
            id=Id(reader.world(int(str(match.option.key))).id),
            tier=match.tier,
            score=round(match.confidence, 4),
            evidence={"compared": list(match.compared), **match.evidence},
        )
        for match in verdict.matches
        if match.reuses or match.proposes
    ]


def _neighbourhood(resolving: Resolving, rows: set[int]) -> list[int]:
    """Return the rows within two hops, nearest first, no more than are looked at."""
    reader, moment = resolving.reader, resolving.view.moment
    seen = dict.fromkeys(sorted(rows))
    frontier = set(rows)
    for _ in range(HOPS):
        found = reader.edges_at(frontier, "both", None, moment.known)
        ends = {end for item in found for end in (item.source, item.target)}
        frontier = ends - seen.keys()
        seen.update(dict.fromkeys(sorted(frontier)))
        if len(seen) > NEIGHBOURS_MAX:
            break
    return list(seen)[:NEIGHBOURS_MAX]


def _new_guesses(resolving: Resolving, rows: Sequence[int]) -> list[tuple[Id, Guess]]:
    """Return what was not proposed before, each pair once."""
    reader = resolving.reader
    found: list[tuple[Id, Guess]] = []
    pairs: set[frozenset[bytes]] = set()
    for row in rows:
        named = resolving.named(row)
        if named is None:
            continue
        proposed = reader.proposals(rows=[row])
        apart = {side for item in proposed for side in (item.low, item.high)} | {row}
        same, guesses = _judged(resolving, resolving.of(named, apart))
        ident = Id(reader.world(row).id)
        if same is not None:
            guesses = [Guess(id=same, tier="exact", score=1.0, evidence={})]
        for guess in guesses:
            pair = frozenset({bytes(ident), bytes(guess.id)})
            if pair not in pairs:
                pairs.add(pair)
                found.append((ident, guess))
    return found
