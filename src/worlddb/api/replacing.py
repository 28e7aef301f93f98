"""Replacing: what has to be known before a draft's claims may end others.

    draft ──▶ its functional claims ──snapshot──▶ what stands about their subjects ──▶ supersedes

Read before the transaction, like names; again inside it if somebody else wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from worlddb.model.claims import Claim
from worlddb.model.drafts import Draft
from worlddb.model.id import Id
from worlddb.model.scopes import SCOPE
from worlddb.model.values import NOW, Commit
from worlddb.read.claims import carriers, standing_claims
from worlddb.read.moment import Moment, moment_of
from worlddb.store.protocol import Reader
from worlddb.write.ingest import Outcome
from worlddb.write.superseding import Stood, functional_claims, supersede
from worlddb.write.transaction import Transaction

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
