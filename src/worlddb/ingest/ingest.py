"""Neighbourhoods: what lies within two hops of nodes, for many of them on one snapshot.

What was written together is mostly about the same few names, and a name that many texts mention has
many edges. So each node's edges are read once, however many neighbourhoods it is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from worlddb.api.opened import Opened
from worlddb.errors import InvalidInputError
from worlddb.identity.store_resolver import HOPS, NEIGHBOURS_MAX
from worlddb.ingest.apply import Guess, Outcome, propose, write_draft
from worlddb.ingest.background_queue import Reclustered, unless
from worlddb.ingest.extraction_queue import Waits, drafted, enqueue
from worlddb.ingest.messages import Input as Input
from worlddb.ingest.messages import messages_of as messages_of
from worlddb.ingest.plan import Replacing, ended_by, letters_of, new_guesses, sorted_out
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import Instant, from_micros, to_micros
from worlddb.model.records import NOW, Commit, Plain, Proposal
from worlddb.store.protocol import ROOT_ROW, Reader
from worlddb.view import equivalence as identity
from worlddb.view import lookup
from worlddb.view.visibility import moment_of
from worlddb.write.transaction import DEFAULT_ACTOR, Transaction, transact

if TYPE_CHECKING:
    from worlddb.identity.match_values import ResolverSettings, Tiebreaker
    from worlddb.identity.store_resolver import NameVectors, StoreResolver
    from worlddb.index.name_index import NameIndex
    from worlddb.store.protocol import Reader


class Neighbourhoods:
    """The neighbourhoods of one snapshot, as of commit `known`."""

    def __init__(self, reader: Reader, known: int | None) -> None:
        self._reader = reader
        self._known = known
        self._ends: dict[int, tuple[int, ...]] = {}

    def of(self, rows: set[int]) -> list[int]:
        """Return the rows within two hops, nearest first, no more than are looked at."""
        seen = dict.fromkeys(sorted(rows))
        frontier = set(rows)
        for _ in range(HOPS):
            self._read(frontier)
            ends = {end for row in frontier for end in self._ends[row]}
            frontier = ends - seen.keys()
            seen.update(dict.fromkeys(sorted(frontier)))
            if len(seen) > NEIGHBOURS_MAX:
                break
        return list(seen)[:NEIGHBOURS_MAX]

    def _read(self, rows: Iterable[int]) -> None:
        """Read the other ends of the edges of rows that were not read before."""
        fresh = {row: set[int]() for row in rows if row not in self._ends}
        for item in self._reader.edges_at(fresh, "both", None, self._known) if fresh else ():
            # Being in one scope says nothing about who is who, and the root refers to what waits.
            if item.edge.type != "contains":
                for row, end in ((item.source, item.target), (item.target, item.source)):
                    if row in fresh and end != ROOT_ROW:
                        fresh[row].add(end)
        for row, ends in fresh.items():
            # As many as can be looked at: no more of them than are seen already are of no use.
            self._ends[row] = tuple(sorted(ends)[: 2 * NEIGHBOURS_MAX])


# Ingesting: text to memory. Extract, resolve, write, and look again at the neighbourhood.
#
# text ──extract──▶ draft ──resolve──▶ verdicts ──write──▶ commit ──▶ recluster
#
# Extraction and tie-breaking, which may ask a person or a model, end before the transaction begins.


RECLUSTER_ACTOR = "recluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested(Plain):
    """What an ingest did: the memories, what was new, used again and proposed, and the commit.

    `superseded` are the facts that ended because the text says otherwise now.
    `commit` is None if everything was there already. `pending` is why the model's part of the
    extraction waits (`db.pending()`), None if it does not.
    """

    memories: tuple[Id, ...]
    created: tuple[Id, ...]
    reused: tuple[Id, ...]
    proposals: tuple[Proposal, ...]
    commit: Commit | None
    pending: str | None = None
    superseded: tuple[Id, ...] = ()


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
        supersede: bool = True,
    ) -> Ingested:
        """Remember a text or messages inside `world`, as one commit; say what that did.

        The extractor ("rules" by default, or "verbatim", or an `LlmExtractor`, or your own) makes
        a draft of it. Names are resolved: an exact match is used again, a likely one is proposed
        with its evidence and never merged. The same text again in the same world is the same memory
        with one source more. What the text surely replaces (where somebody lives, a phone number)
        is superseded, with evidence, unless `supersede=False`. An extractor whose model fails loses
        nothing: the text is written, and the rest waits for `extract_pending`. Afterwards the
        neighbourhood of what is new is resolved again: by default in the background, which
        `db.wait()` waits for and `db.reclustered` tells about.

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
        with self._store.read() as reader:
            home = _world_id(reader, world)
        messages = self._as_known(messages, home)
        draft, waits = drafted(extractor_of(extractor), messages, from_micros(when))

        def after(tx: Transaction, outcome: Outcome) -> None:
            enqueue(tx, draft, outcome.ids, waits)

        outcome, commit = self._land(
            draft,
            home,
            source=source,
            actor=actor,
            tiebreaker=tiebreaker,
            settings=resolver,
            supersede=supersede,
            after=after,
        )
        self._look_again(home, outcome.created, recluster, resolver)
        return self._told(draft, outcome, commit, waits)

    def _as_known(
        self, messages: list[Message], home: Id, within: Sequence[Sequence[Id]] = ()
    ) -> list[Message]:
        """Return a text in the letters of the memory of `home` that says the same; a chat as it is.

        So what is read out of it is the same again, to the place where it stands.
        """
        if len(messages) != 1:
            return messages
        self._catch_up()
        with self._store.read() as reader:
            row = reader.node_row(home)
            if row is None:
                return messages  # A world that is still to be made.
            resolving = self._resolving(reader, home, None, None, within=within)
            return [replace(messages[0], text=letters_of(resolving, messages[0].text, row))]

    def _look_again(
        self,
        world: Id,
        created: Sequence[Id],
        when: Literal["later", "now", "off"],
        settings: ResolverSettings | None = None,
    ) -> None:
        """Resolve the neighbourhood of new nodes once more, in the background or at once."""
        nodes = tuple(created)

        def again(puts: Sequence[Sequence[Id]]) -> list[Proposal]:
            return self._recluster(puts, world, settings, self._later.is_over)

        if not nodes or when == "off":
            return
        if when == "later":
            self._later.put((world, settings), nodes, again)
        else:
            self._recluster([nodes], world, settings)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the work in the background is done; return whether it was in time."""
        return self._later.wait(timeout_s)

    @property
    def reclustered(self) -> list[Reclustered]:
        """What the last hundred looks at a neighbourhood in the background found."""
        return list(self._later.done)

    def _land(
        self,
        draft: Draft,
        home: Id,
        *,
        source: str | Sequence[str] | None,
        actor: str,
        tiebreaker: Tiebreaker | None = None,
        settings: ResolverSettings | None = None,
        given: Mapping[str, Id] = MappingProxyType({}),
        places: Mapping[str, Id] = MappingProxyType({}),
        within: Sequence[Sequence[Id]] = (),
        supersede: bool = True,
        spared: Collection[Id] = (),
        before: Callable[[Transaction], None] = lambda tx: None,
        after: Callable[[Transaction, Outcome], None] = lambda tx, outcome: None,
    ) -> tuple[Outcome, Commit | None]:
        """Write a draft into `home` as one commit, with what comes `before` and `after` it there.

        `given` are drafted nodes that are surely there already; `places` are worlds that drafted
        nodes name as their parents. The home may be made by `before`. If it may `supersede`, what
        the draft claims ends what it replaces, except what is `spared`. Texts are compared with and
        end only what is inside one of each of `within`, too.
        """
        lookups = self._catch_up()
        with self._store.read() as reader:
            seen = reader.head().seq
            resolving = self._resolving(reader, home, settings, tiebreaker, within=within)
            known, guesses = sorted_out(resolving, draft, home)
            there = {**known, **places, **given}
            replacing = Replacing.of(reader, draft, there, home, self._clock(), resolving.keep_said)
        with transact(
            self._store, self._registry, actor=actor, bulk=False, limits=self._limits
        ) as tx:
            if tx.follows != seen:
                # Somebody else has written meanwhile; nobody can from here on.
                with self._store.read() as reader:
                    again = self._resolving(reader, home, settings, None, within=within)
                    known = sorted_out(again, draft, home)[0] | _still(again, known)
                    there = {**known, **places, **given}
                    replacing = Replacing.of(
                        reader, draft, there, home, self._clock(), again.keep_said
                    )
            before(tx)
            outcome = write_draft(
                tx,
                draft,
                world=home,
                known={**known, **given},
                guesses=guesses,
                source=source,
                places=places,
            )
            if supersede:
                replacing.write(tx, draft, outcome, spared)
            after(tx, outcome)
            tx._derive(lookups.take_in)
        return outcome, tx.commit

    def recluster(
        self,
        ids: Sequence[bytes | str],
        *,
        world: bytes | str | None = None,
        resolver: ResolverSettings | None = None,
    ) -> list[Proposal]:
        """Resolve the named nodes within two hops of `ids` once more; propose what is found.

        At most 200 nodes are looked at. A pair that was proposed before is not proposed again.
        Here names are compared by their vectors, too, if the store has any: one that was never
        searched has none, and no embedder is asked for it.

        Raises:
            InvalidInputError, NotFoundError: no such node or world.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._recluster([ids], world, resolver)

    def _recluster(
        self,
        groups: Sequence[Sequence[bytes | str]],
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Proposal]:
        """Recluster around several groups of nodes, as if one after the other.

        What was proposed once lets the next look at a node find what is less like it. So a node
        that is near several groups is looked at as often, as long as that finds anything.

        Raises:
            LeftError: it is over before the end.
        """
        outcome = Outcome()
        for turn in range(1, len(groups) + 1):
            found = self._guesses(groups, turn, world, settings, is_over)
            if not found:
                break
            with transact(
                self._store, self._registry, actor=RECLUSTER_ACTOR, bulk=False, limits=self._limits
            ) as tx:
                for ident, guess in found:
                    propose(tx, ident, guess, outcome)
        return self._proposals(outcome) if outcome.proposed else []

    def _guesses(
        self,
        groups: Sequence[Sequence[bytes | str]],
        turn: int,
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool],
    ) -> list[tuple[Id, Guess]]:
        """Return what the nodes that are near at least `turn` of the groups may be the same as."""
        self._catch_up()
        meaning = self._meaning(settings)
        with self._store.read() as reader:
            inside = _world_id(reader, world)
            resolving = self._resolving(reader, inside, settings, None, meaning)
            around = Neighbourhoods(reader, resolving.view.moment.known)
            near: Counter[int] = Counter()
            for ids in unless(is_over, groups):
                rows = {lookup.find(reader, ident, "nodes") for ident in ids}
                near.update(around.of(rows))
            often = [row for row, times in near.items() if times >= turn]
            return new_guesses(resolving, unless(is_over, often))

    def _catch_up(self) -> NameIndex:
        """Bring the index of names, attributes and contents to the last commit, and return it."""
        from worlddb.index.name_index import NameIndex, attribute_keys, block_keys

        lookups = NameIndex(self._store, block_keys, attribute_keys)
        lookups.catch_up()
        return lookups

    def _meaning(self, settings: ResolverSettings | None) -> NameVectors | None:
        if settings is not None and "embedding" not in settings.tiers:
            return None
        from worlddb.identity.store_resolver import NameVectors

        return NameVectors.at_hand(self._search, self._store)

    def _resolving(
        self,
        reader: Reader,
        world: bytes,
        settings: ResolverSettings | None,
        tiebreaker: Tiebreaker | None,
        meaning: NameVectors | None = None,
        *,
        within: Sequence[Sequence[Id]] = (),
    ) -> StoreResolver:
        from worlddb.identity.match_values import DEFAULT_SETTINGS
        from worlddb.identity.resolver import Resolver
        from worlddb.identity.store_resolver import StoreResolver
        from worlddb.memory.scope_view import NOWHERE
        from worlddb.view.visibility import View

        chosen = settings or DEFAULT_SETTINGS
        row = reader.node_row(world)
        moment = moment_of(reader, NOW, self._clock())
        worlds = [ROOT_ROW if row is None else row]
        view = View(reader, moment, worlds=worlds, members=True, ended=False)
        said = None
        if within:
            # A world that is still to be made has no row, and nothing in it.
            more = [[reader.node_row(one) or NOWHERE for one in group] for group in within]
            said = View(reader, moment, worlds=worlds, members=True, ended=False, within=more)
        resolver = Resolver(chosen, tiebreaker=tiebreaker)
        return StoreResolver(reader, view, resolver, chosen, meaning, said)

    def _proposals(self, outcome: Outcome) -> list[Proposal]:
        with self._store.read() as reader:
            moment = moment_of(reader, NOW, self._clock())
            wanted = set(outcome.proposed)
            found = identity.proposals(reader, None, moment)
        return [proposal for proposal in found if proposal.edge in wanted]

    def _told(
        self, draft: Draft, outcome: Outcome, commit: Commit | None, waits: Waits | None
    ) -> Ingested:
        says = [node.key for node in draft.nodes if not node.resolvable]
        return Ingested(
            memories=tuple(outcome.ids[key] for key in says),
            created=tuple(outcome.created),
            reused=tuple(outcome.reused),
            proposals=tuple(self._proposals(outcome)) if outcome.proposed else (),
            commit=commit,
            pending=None if waits is None else waits.error,
            superseded=ended_by(commit),
        )


def _still(resolving: StoreResolver, known: Mapping[str, Id]) -> dict[str, Id]:
    """Return those drafted nodes that are still there: others may have ended them since."""
    seen = resolving.seen(known.values())
    return {key: ident for key, ident in known.items() if ident in seen}


def _world_id(reader: Reader, world: bytes | str | None) -> Id:
    """Return the id of the world that was given; the root's if none was."""
    if world is None:
        return ROOT_ID
    return Id(reader.world(lookup.find(reader, world, "nodes")).id)


def extractor_of(given: Extractor | str | None) -> Extractor:
    """Return an extractor from its name, or as it was given; by default the rules.

    Which model is meant, only the command line and the servers read from settings.

    Raises:
        InvalidInputError: none has that name.
    """
    if given == "llm":
        raise InvalidInputError(
            "extractor 'llm': which model is meant cannot be told by that; pass LlmExtractor(Chat("
            "ChatSettings(provider='openai', base_url=…, model=…))), or LlmExtractor(function) "
            "with a function from messages to text"
        )
    if given is None or isinstance(given, str):
        from worlddb.extract import extractor_named

        return extractor_named(given or "rules")
    return given
