"""Scoring: what a draft says, as plain items that can be compared with what is expected."""

from __future__ import annotations

from datetime import UTC, datetime

from language.english.name_sentences import Case
from worlddb.ingest.extractors import RulesExtractor
from worlddb.model.records import Draft, Message

AT = datetime(2023, 5, 3, 12, tzinfo=UTC)  # a Wednesday

Item = tuple[str, ...]


def drafted(*texts: str | tuple[str, str], at: datetime = AT) -> Draft:
    """Return the draft of texts of the user, or of pairs of speaker and text."""
    pairs = [("user", text) if isinstance(text, str) else text for text in texts]
    messages = [Message(text=text, speaker=speaker) for speaker, text in pairs]
    return RulesExtractor().extract(messages, at)


def items(draft: Draft) -> set[Item]:
    """Return names, aliases, roles and dates of a draft; a speaker counts if spoken of."""
    nodes = {node.key: node for node in draft.nodes}
    named = {edge.target for edge in draft.edges if edge.spans and "relation" not in edge.metadata}
    found: set[Item] = set()
    for node in draft.nodes:
        if node.type == "Date":
            found.add(("date", node.name))
        elif node.type == "Entity" and not node.known_only:
            if node.key in named:
                found.add(("name", node.name))
            found |= {("alias", node.name, alias) for alias in node.aliases}
    for edge in draft.edges:
        if "relation" in edge.metadata and "functional" not in edge.metadata:
            found.add(("role", nodes[edge.source].name, edge.metadata["relation"]))
    return found


def expected(case: Case) -> set[Item]:
    """Return the items of a case."""
    found: set[Item] = {("name", name) for name in case.names}
    found |= {("date", name) for name in case.dates}
    found |= {("alias", name, alias) for name, all_ in case.aliases.items() for alias in all_}
    found |= {("role", name, role) for name, role in case.roles.items()}
    return found
