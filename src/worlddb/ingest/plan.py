"""Judging: from what the resolver says of names to what is used again and what is proposed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unicodedata import normalize

from worlddb.claims.claim import Claim
from worlddb.claims.standing import carriers, standing_claims
from worlddb.index.name_index import content_key
from worlddb.ingest.apply import Guess, Outcome, Stood, functional_claims, supersede
from worlddb.ingest.messages import said_as
from worlddb.model.address import Id
from worlddb.model.drafts import Draft
from worlddb.model.records import NOW, Commit
from worlddb.model.scopes import SCOPE
from worlddb.store.protocol import Reader
from worlddb.view import equivalence as identity
from worlddb.view.visibility import Moment, moment_of
from worlddb.write.transaction import Transaction

if TYPE_CHECKING:
    from worlddb.identity.match_values import Verdict as Verdict
    from worlddb.identity.store_resolver import StoreResolver


MEMORY = "Memory"


def sorted_out(
    resolving: StoreResolver, draft: Draft, world: bytes
) -> tuple[dict[str, Id], dict[str, list[Guess]]]:
    """Return which drafted nodes are there already, and what the others may be the same as."""
    known: dict[str, Id] = {}
    guesses: dict[str, list[Guess]] = {}
    row = resolving.reader.node_row(world)
    if row is None:
        return known, guesses  # Nothing can be in a world that is still to be made.
    for node in draft.nodes:
        if node.resolvable:
            same, maybe = _judged(resolving, resolving.verdict(node), home=row)
            if same is not None:
                known[node.key] = same
            else:
                guesses[node.key] = maybe
        elif node.parent is None:
            found = resolving.same_content(node, row)
            if found is not None:
                known[node.key] = Id(resolving.reader.world(found).id)
                known.update(_same_parts(resolving, draft, node.key, found))
    return known, guesses


def letters_of(resolving: StoreResolver, text: str, parent: int) -> str:
    """Return a text in the letters of the live memory of `parent` that says the same, if any does.

    The text itself comes before one that has other white space or composes accents otherwise.
    """
    from worlddb.identity.store_resolver import SAME_MAX

    # The index knows texts as they were written, but for white space: ask for either spelling.
    forms = {text, *(normalize(form, text) for form in ("NFC", "NFD"))}
    keys = sorted(content_key(MEMORY, form, parent) for form in forms)
    found = resolving.reader.lookups.find(keys, SAME_MAX)
    seen = resolving.said.keep(row for rows in found.values() for row in rows)
    there = [
        body.content
        for body in resolving.reader.bodies(sorted(seen))
        if (body.parent, body.type) == (parent, MEMORY) and said_as(body.content) == said_as(text)
    ]
    return there[0] if there and text not in there else text


def _same_parts(resolving: StoreResolver, draft: Draft, key: str, row: int) -> dict[str, Id]:
    """Return which drafted parts of a node that is there already are there, too."""
    drafted = [node for node in draft.nodes if node.parent == key]
    if not drafted:
        return {}
    reader = resolving.reader
    left = list(reader.bodies(reader.children_of([row])))
    known: dict[str, Id] = {}
    for node in drafted:
        for body in left:
            if (body.type, body.name, body.content) == (node.type, node.name, node.content):
                known[node.key] = Id(body.id)
                left.remove(body)
                break
    return known


def _judged(
    resolving: StoreResolver, verdict: Verdict, home: int | None = None
) -> tuple[Id | None, list[Guess]]:
    """Return the node to use again, or the guesses to propose.

    Several nodes that bear the very name are one only if they were accepted as one. Those that live
    at `home` come before what is only shown there: else each mention would make one more.
    """
    from worlddb.identity.match_values import acted_on

    reader = resolving.reader
    same = sorted(int(str(match.option.key)) for match in verdict.matches if match.reuses)
    if home is not None and len(same) > 1:
        same = [body.row for body in reader.bodies(same) if body.parent == home] or same
    if same and set(same) <= identity.accepted_class(reader, same[:1], resolving.view.moment):
        return Id(reader.world(same[0]).id), []
    return None, [
        Guess(
            id=Id(reader.world(int(str(match.option.key))).id),
            tier=match.tier,
            score=round(match.confidence, 4),
            evidence={"compared": list(match.compared), **match.evidence},
        )
        for match in acted_on(verdict)
    ]


def new_guesses(resolving: StoreResolver, rows: Iterable[int]) -> list[tuple[Id, Guess]]:
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


# Replacing: what has to be known before a draft's claims may end others.
#
# draft ──▶ its functional claims ──snapshot──▶ what stands about their subjects ──▶ supersedes
#
# Read before the transaction, like names; again inside it if somebody else wrote meanwhile.


_SHARED = ("agent:", "app:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """The claims of a draft, and what they may end."""

    home: Id
    moment: Moment
    claims: list[Claim] = field(default_factory=list)
    stood: Stood = field(default_factory=Stood)

    @classmethod
    def of(
        cls,
        reader: Reader,
        draft: Draft,
        known: Mapping[str, Id],
        home: Id,
        now: int,
        keep: Callable[[Iterable[int]], set[int]],
    ) -> Replacing:
        """Return what a snapshot says; `known` are the drafted nodes that are there already.

        What `keep` does not keep is none of the writer's business, and stands as it is.
        """
        moment = moment_of(reader, NOW, now)
        row = reader.node_row(home)
        claims = functional_claims(draft, named=row is not None and _is_shared(reader, row))
        if not claims or row is None:
            return cls(home=home, moment=moment, claims=claims)
        wanted: dict[Id, set[str]] = {}
        for claim in claims:
            if claim.subject in known:
                wanted.setdefault(known[claim.subject], set()).add(claim.relation)
        states = [known[claim.fact] for claim in claims if claim.fact in known]
        return cls(
            home=home,
            moment=moment,
            claims=claims,
            stood=Stood(
                claims=standing_claims(reader, wanted, home, moment, keep),
                nodes=carriers(reader, states),
            ),
        )

    def write(
        self, tx: Transaction, draft: Draft, outcome: Outcome, spared: Collection[Id]
    ) -> None:
        """Let the claims of a draft that was just written end what they replace."""
        if self.claims:
            found = self.claims, self.stood
            now = self.moment.now
            supersede(tx, draft, outcome, *found, home=self.home, now=now, spared=spared)


def ended_by(commit: Commit | None) -> tuple[Id, ...]:
    """Return the nodes that a commit ended, each once."""
    changes = commit.changes if commit is not None else ()
    return tuple(dict.fromkeys(item.id for item in changes if item.kind == "close_node"))


def _is_shared(reader: Reader, row: int) -> bool:
    """Return whether a world is an agent's or an app's: there "I" may be anybody."""
    world = reader.world(row)
    return world.type == SCOPE and world.name.startswith(_SHARED)
