"""Memory parts: which drafted nodes count, and what the marks of a memory mean for its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from worlddb.identity.store_resolver import StoreResolver
from worlddb.model.address import Id
from worlddb.model.drafts import Draft, Message
from worlddb.model.origin import FULL, INDEPENDENT, ORIGINS, USER, Origin, least, level_of
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.view.trust_levels import TrustLevels
from worlddb.write.transaction import Transaction

WORD, SENTENCE_END = re.compile(r"\w+"), re.compile(r"(?<=[.!?])\s+|\n+")
WORD_CHARS_MIN = 4  # Shorter words ("the", "you", "was") are in every text.
REPEATED = 0.75  # Of the words of a sentence: more than a common topic, less than a quotation.
TURN_KEY = "turn:"
"""Begins the key of a drafted turn; its number follows (`extractors.turn_key`)."""
Origins: TypeAlias = Mapping[str, Sequence[str]]
"""Who brought in drafted nodes, by key; a node of the user alone is left out."""

OF_WHOLE = frozenset({"pinned"})
"""Metadata keys that say nothing about the parts of a memory."""


def outlasting(
    reader: Reader, draft: Draft, known: dict[str, Id], origins: Origins
) -> dict[str, Id]:
    """Take the texts out of `known` that drafted ones replace; return them by key.

    These are texts that end before the drafted ones, and texts that are less trusted than somebody
    who says the same without having read it there.
    """
    found: dict[str, Id] = {}
    for node in draft.nodes:
        if not node.resolvable and node.parent is None and node.key in known:
            row = reader.node_row(known[node.key])
            if row is None:
                continue
            there, given = reader.nodes([row])[row], origins.get(node.key, ())
            ends = there.valid_to
            is_longer = ends is not None and (node.valid_to is None or ends < node.valid_to)
            if is_longer or (there.origins and confirms(reader, there, given)):
                found[node.key] = known.pop(node.key)
                for part in draft.nodes:
                    if part.parent == node.key:
                        known.pop(part.key, None)
    return found


def same_parts(resolver: StoreResolver, draft: Draft, key: str, row: int) -> dict[str, Id]:
    """Return which drafted children of a node that is in the store are in the store, too."""
    drafted = [node for node in draft.nodes if node.parent == key]
    if not drafted:
        return {}
    reader = resolver.reader
    left = list(reader.bodies(reader.children_of([row])))
    known: dict[str, Id] = {}
    for node in drafted:
        for body in left:
            if (body.type, body.name, body.content) == (node.type, node.name, node.content):
                known[node.key] = Id(body.id)
                left.remove(body)
                break
    return known


def confirms(reader: Reader, there: Node, origins: Sequence[str]) -> bool:
    """Return whether somebody says by themselves what a less trusted text says."""
    levels = TrustLevels(reader)
    own = level_of(origins, levels.settings(there.parent))
    return own > levels.of(there) and INDEPENDENT.issuperset(origins)


def not_trusted(reader: Reader, origins: Origins, home: Id) -> frozenset[str]:
    """Return the keys of drafted nodes that are not trusted in full in their world."""
    settings = TrustLevels(reader).settings(home)
    return frozenset(key for key in origins if level_of(origins[key], settings) < FULL)


def origins_of(
    draft: Draft, messages: Sequence[Message], whole: Origin | None
) -> dict[str, tuple[str, ...]]:
    """Return who brought in what a draft says, by key; nothing of what the user says.

    A text has the origin of its message, a fact those of all texts that it was read from. A name
    has the origin of the one nearest to the user who said it: anybody may mention a name.
    """
    given = _with_repeats(
        messages, [least(one for one in (message.origin, whole) if one) for message in messages]
    )
    if all(one == USER for one in given):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for node in draft.nodes:
        said = {given[span.message] for span in node.spans if span.message < len(given)}
        number = node.key.removeprefix(TURN_KEY)
        if number != node.key and number.isdecimal() and int(number) < len(given):
            said = {given[int(number)]}
        elif not said:
            # A session is a place for its turns; whatever has no span was read from the whole.
            said = {whole or USER} if node.type == "Session" else set(given)
        if node.resolvable:
            said = {min(said, key=ORIGINS.index)}
        if kept := tuple(sorted(said - {USER})):
            found[node.key] = kept
    return found


def _with_repeats(messages: Sequence[Message], origins: Sequence[str]) -> list[str]:
    """Return the origins of messages, where an assistant that repeats a tool has the tool's."""
    heard: list[tuple[str, frozenset[str]]] = []
    found = []
    for message, origin in zip(messages, origins, strict=True):
        if origin == "assistant" and heard:
            sentences = [_words(one) for one in SENTENCE_END.split(message.text)]
            origin = least(
                (
                    origin,
                    *(
                        before
                        for before, words in heard
                        for one in sentences
                        if len(one & words) > REPEATED * len(one)
                    ),
                )
            )
        elif level_of((origin,)) < FULL:
            heard.append((origin, _words(message.text)))
        found.append(origin)
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in WORD.findall(text.casefold()) if len(word) >= WORD_CHARS_MIN)


def without_unknown(draft: Draft, known: Mapping[str, Id]) -> Draft:
    """Return a draft without the words that may be names and are none the store knows."""
    left_out = {node.key for node in draft.nodes if node.known_only and node.key not in known}
    if not left_out:
        return draft
    return replace(
        draft,
        nodes=tuple(node for node in draft.nodes if node.key not in left_out),
        edges=tuple(edge for edge in draft.edges if not {edge.source, edge.target} & left_out),
        aliases={key: names for key, names in draft.aliases.items() if key not in left_out},
    )


def add_metadata(
    tx: Transaction, draft: Draft, memory: str, metadata: Mapping[str, Any], ids: Mapping[str, Id]
) -> None:
    """Give a memory its metadata, and its turns and facts what filters ask for."""
    parts = {key: value for key, value in metadata.items() if key not in OF_WHOLE}
    for node in draft.nodes:
        held = metadata if node.key == memory else parts
        if not node.resolvable and held:
            tx.add_metadata(ids[node.key], held)
