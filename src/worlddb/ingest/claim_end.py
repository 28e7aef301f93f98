"""Claim end: how a write ends what another text claims, and what it may not end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from worlddb.claims.claim import CLAIM_EDGE, FACT, Claim, Standing, value_key
from worlddb.claims.claim_lookup import Stood, Supersession
from worlddb.claims.merged_claims import THROUGH
from worlddb.ingest.extractors import turn_key
from worlddb.ingest.text_origins import Origins
from worlddb.model.address import Id
from worlddb.model.drafts import DraftEdge
from worlddb.model.origin import INDEPENDENT, NOTE, least
from worlddb.model.records import NodeDraft
from worlddb.ontology.edge_types import LESS_TRUSTED
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction

EVIDENCE_CHARS_MAX = 1_000  # Enough for the sentence that says so; metadata is not for whole texts.


def end_claim(tx: Transaction, ended: Supersession, apart: dict[tuple[Id, str], Id]) -> bool:
    """Write that a claim is superseded by another; `apart` are the facts made for that so far.

    Return False, and write that the two contradict each other, if the older is more trusted.
    """
    old, by = ended.old, ended.by
    if tx.outranks(old.carrier, by.carrier):
        reason = {"reason": LESS_TRUSTED}
        tx.write_edge("contradicts", by.carrier, old.carrier, metadata=reason)
        return False
    target, sentence = old.carrier, (old.carrier, old.text)
    if old.apart:
        target = apart[sentence] = apart.get(sentence) or _separate_fact(tx, old)
    said: dict[str, Any] = {"relation": by.relation, "was": old.value or f"not {old.was}"}
    if by.value:
        said["now"] = by.value
    said["evidence"] = ended.evidence[:EVIDENCE_CHARS_MAX]
    if old.subject != by.subject:
        said[THROUGH] = [str(old.subject), str(by.subject)]
    tx.write_edge("supersedes", by.carrier, target, valid_from=ended.at, metadata=said)
    return True


def _separate_fact(tx: Transaction, old: Standing) -> Id:
    """Make a fact of the sentence that states a claim in a longer text; return its id."""
    drafted = NodeDraft(
        type=FACT,
        content=old.text,
        parent=old.world,
        created_at=old.said,
        valid_from=old.began,
    )
    fact = tx.create_nodes([drafted], reuse=False)[0]
    said: dict[str, Any] = {"relation": old.relation, "functional": True}
    said |= {"value": old.value} if old.value else {}
    said |= {"was": old.was} if old.was else {}
    tx.write_edge("derived_from", fact, old.carrier, metadata={"evidence": "quote"})
    tx.write_edge(CLAIM_EDGE, fact, old.subject, metadata={**said, "stands_for": str(old.carrier)})
    for world in old.members:
        tx.write_edge("contains", world, fact)
    return fact


def with_origin(edge: DraftEdge, origins: Origins, memory: str) -> DraftEdge:
    """Return an edge between names with the origin of who states it; a text has its own."""
    turns = [turn_key(span.message) for span in edge.spans]
    said = {one for key in turns for one in origins.get(key, ())}
    said = said or set(origins.get(memory, ()))
    return replace(edge, metadata={**edge.metadata, NOTE: least(said)}) if said else edge


def with_echoes(
    reader: Reader,
    origins: Origins,
    claims: Sequence[Claim],
    stood: Stood,
    known: Mapping[str, Id],
) -> Origins:
    """Return origins with those of texts that an assistant or a model repeats.

    Whoever has read a memory may say it again in other words. That is no further evidence, so a
    claim that stands already has the origins of what states it.
    """
    found = dict(origins)
    for claim in claims:
        own = found.get(claim.fact, ())
        if INDEPENDENT.issuperset(own) or claim.subject not in known:
            continue
        said = value_key(claim.value)
        same = (
            old.carrier
            for old in stood.claims.get(known[claim.subject], ())
            if old.relation == claim.relation and said == value_key(old.value)
        )
        rows = [row for ident in same if (row := reader.node_row(ident)) is not None]
        more = [one for node in reader.nodes(rows).values() for one in node.origins]
        found[claim.fact] = tuple(dict.fromkeys((*own, *more)))
    return found


def not_ended(what: str, old: Id) -> str:
    """Return the note that something more trusted was not ended."""
    return f"{what}: {LESS_TRUSTED}, {old.short}, which stays"
