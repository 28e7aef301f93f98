"""Memory marks: metadata that a caller gives with a text: names, tags, a pin, an expiry.

    draft ──with_names(names, aliases)──▶ the same draft, with subjects and aliases

Tags and pins are metadata (`tags`, `pinned`), so filters find them and both clocks apply to them.
The expiry is the end of the memory's validity: after it the memory is found only as of an earlier
time. A stated name may be one that the extractor has read, perhaps under an alias; otherwise it
becomes an entity of the draft. `identity/` decides which node of the store it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from worlddb.errors import InvalidInputError
from worlddb.ingest.draft_builder import name_key
from worlddb.ingest.draft_parts import QUARANTINE
from worlddb.model.inputs import Instant, check_names, from_micros, to_micros
from worlddb.model.records import Draft, DraftEdge, DraftNode, Extractor
from worlddb.model.text_safety import Origin

if TYPE_CHECKING:
    from worlddb.memory.writes import ScopeDestination

TAGS, PINNED = "tags", "pinned"
UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
MICROS = 1_000_000  # microseconds of a second
_TTL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*")

Ttl: TypeAlias = float | str | timedelta
"""How long something stays: seconds, a timedelta, or text such as "30d", "12h" or "90s"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Metadata and expiry of a memory; `expires` is in microseconds, None without expiry."""

    metadata: Mapping[str, Any] | None
    expires: int | None

    def ending(self, draft: Draft) -> Draft:
        """Return a draft whose nodes and edges end when the memory expires.

        Raises:
            InvalidInputError: the end is not after the beginning.
        """
        if self.expires is None or not draft.nodes:
            return draft
        end = from_micros(self.expires)
        begins = draft.nodes[0].valid_from
        if begins is not None and end <= begins:
            raise InvalidInputError(
                f"expires_at: {end.isoformat()} is not after {begins.isoformat()}, when the memory "
                "begins; give a later time"
            )
        nodes = (
            node
            if node.resolvable
            else replace(node, valid_to=end if node.valid_to is None else min(node.valid_to, end))
            for node in draft.nodes
        )
        said = {node.key for node in draft.nodes if not node.resolvable}
        edges = (
            replace(edge, valid_to=end)
            if edge.valid_to is None and edge.source not in said
            else edge
            for edge in draft.edges
        )
        return replace(draft, nodes=tuple(nodes), edges=tuple(edges))


NO_MARKS = Marks(metadata=None, expires=None)


def marks_of(
    metadata: Mapping[str, Any] | None,
    *,
    now: int,
    tags: str | Sequence[str] | None = None,
    pin: bool | None = None,
    expires_at: Instant | None = None,
    ttl: Ttl | None = None,
) -> Marks:
    """Return the metadata and expiry from the options of a write.

    Raises:
        InvalidInputError: a mark is wrong, or there are two ends.
    """
    more: dict[str, Any] = {}
    if tags is not None and (words := check_names(tags, TAGS)):
        more[TAGS] = list(dict.fromkeys(words))
    if pin:
        more[PINNED] = True
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata: give a mapping, not {type(metadata).__name__}")
    if metadata and QUARANTINE in metadata:
        # Otherwise a caller could put a text into quarantine, or release one.
        raise InvalidInputError(f"metadata: {QUARANTINE!r} says what was decided; use another key")
    if expires_at is not None and ttl is not None:
        raise InvalidInputError("give expires_at or ttl, not both")
    expires = None if expires_at is None else to_micros(expires_at, "expires_at")
    if ttl is not None:
        expires = now + round(_seconds(ttl) * MICROS)
        from_micros(expires)
    return Marks(metadata={**(metadata or {}), **more} or None, expires=expires)


def _seconds(ttl: Ttl) -> float:
    """Return a time to live in seconds.

    Raises:
        InvalidInputError: it is not a time span above zero.
    """
    seconds: float | None = None
    if isinstance(ttl, timedelta):
        seconds = ttl.total_seconds()
    elif isinstance(ttl, int | float) and not isinstance(ttl, bool):
        seconds = ttl
    elif isinstance(ttl, str) and (found := _TTL.fullmatch(ttl.lower())):
        seconds = float(found[1]) * UNIT_S[found[2] or "s"]
    # A hundred centuries: no later date can be stored.
    if seconds is None or not 0 < seconds < 10_000 * 366 * 86_400:
        raise InvalidInputError(
            f"ttl {ttl!r:.40}: give seconds, or a text such as '30d', '12h', '45m' or '2w'"
        )
    return seconds


REFERENCE = "refers_to"

Aliases: TypeAlias = Mapping[str, str | Sequence[str]] | str | Sequence[str]
"""Further names by name; without a name where exactly one name is given."""


@dataclass(frozen=True, slots=True)
class StatedNames:
    """Names that a text is about, and the aliases of names."""

    names: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]]

    def added_to(self, draft: Draft) -> Draft:
        """Return a draft in which texts are about the names, and entities have the aliases."""
        for name in dict.fromkeys((*self.names, *self.aliases)):
            aliases = self.aliases.get(name, ())
            draft = _with_name(draft, name, aliases, about=name in self.names)
        return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTerms:
    """The options of a call that writes a text, as the caller gave them.

    `marks` has metadata, tags, pin, expires_at and ttl by name; see `Memory.write` for the rest.
    """

    at: Instant | None
    source: str | Sequence[str] | None
    marks: Mapping[str, Any]
    names: str | Sequence[str] | None = None
    aliases: Aliases | None = None
    key: str | None = None
    extractor: Extractor | str | None = None
    origin: Origin | None = None
    scope: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTerms:
    """The options of a write, checked, without secrets, and with its destination."""

    destination: ScopeDestination
    at: Instant | None = None
    source: str | Sequence[str] | None = None
    marks: Marks = NO_MARKS
    names: StatedNames | None = None
    extractor: Extractor | str | None = None
    origin: Origin | None = None
    secrets: tuple[str, ...] = ()


def stated_names(names: str | Sequence[str] | None, aliases: Aliases | None) -> StatedNames:
    """Return the names and aliases of a call after a check.

    Raises:
        InvalidInputError: something is not a name, or nobody can tell whose an alias is.
    """
    said = () if names is None else check_names(names, "names")
    if not aliases:
        return StatedNames(said, {})
    if not isinstance(aliases, Mapping):
        if len(said) != 1:
            raise InvalidInputError(
                f"aliases: say whose they are, such as {{'Sarah Chen': ['SC']}}; a list needs "
                f"exactly one name in `names`, not {len(said)}"
            )
        aliases = {said[0]: aliases}
    owners = check_names(tuple(aliases), "aliases")
    given: Iterable[Any] = aliases.values()
    each = (check_names(more, "aliases") if more else () for more in given)
    return StatedNames(said, dict(zip(owners, each, strict=True)))


def _with_name(draft: Draft, name: str, aliases: Sequence[str], *, about: bool) -> Draft:
    """Return a draft with an entity of a name, to which the texts refer."""
    keys = list(map(name_key, (name, *aliases)))
    same = [node for node in draft.nodes if node.resolvable and _is_called(node, keys)]
    same.sort(key=lambda node: name_key(node.name) != keys[0])
    first = same[0] if same else DraftNode(key=f"entity:{keys[0]}", type="Entity")
    further = (*aliases, *(alias for node in same for alias in (*node.aliases, node.name)))
    entity = replace(
        first,
        name=name,
        aliases=tuple(alias for alias in dict.fromkeys(further) if name_key(alias) != keys[0]),
        resolvable=True,
        known_only=False,
        spans=tuple(span for node in same for span in node.spans),
    )
    left_out = {node.key for node in same}
    at = next((at for at, node in enumerate(draft.nodes) if node in same), len(draft.nodes))
    nodes = [node for node in draft.nodes if node.key not in left_out]
    nodes.insert(at, entity)
    edges = [_moved(edge, left_out, entity.key) for edge in draft.edges]
    edges = [edge for edge in edges if edge.source != edge.target]
    return replace(draft, nodes=tuple(nodes), edges=_referring(nodes, edges, entity, about))


def _is_called(node: DraftNode, keys: Sequence[str]) -> bool:
    return any(name_key(name) in keys for name in (node.name, *node.aliases))


def _moved(edge: DraftEdge, before: set[str], now: str) -> DraftEdge:
    """Return an edge with its ends moved to the entity that several drafted nodes became."""
    source = now if edge.source in before else edge.source
    target = now if edge.target in before else edge.target
    return replace(edge, source=source, target=target)


def _referring(
    nodes: Sequence[DraftNode], edges: Sequence[DraftEdge], entity: DraftNode, about: bool
) -> tuple[DraftEdge, ...]:
    """Return edges by which every text refers to an entity; with `about`, as its subject."""
    texts = [node.key for node in nodes if not node.resolvable and node.parent == nodes[0].key]
    left = dict.fromkeys(texts or [nodes[0].key])
    if not about and any(edge.target == entity.key for edge in edges):
        return tuple(edges)
    role = {"role": "about"} if about else {}
    done = []
    for edge in edges:
        said = edge.type == REFERENCE and "relation" not in edge.metadata
        if said and edge.target == entity.key and edge.source in left:
            del left[edge.source]
            edge = replace(edge, metadata={**edge.metadata, **role})
        done.append(edge)
    more = {**role, "text": entity.name}
    made = (DraftEdge(type=REFERENCE, source=key, target=entity.key, metadata=more) for key in left)
    return (*done, *made)
