"""Resolving: for a drafted node, which node that is there already might be meant.

    names ──keys──▶ lookup index ──▶ what can be seen ──▶ the resolver's tiers ──▶ verdict

Reads only. What to do with a verdict is decided where it is written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from worlddb.index.lookups import NOT_NAMED, content_key, name_number
from worlddb.model.drafts import DraftNode
from worlddb.read.find import View
from worlddb.resolve.keys import block_keys
from worlddb.resolve.resolver import Resolver
from worlddb.resolve.settings import ResolverSettings
from worlddb.resolve.values import Named, Outcome, Population
from worlddb.store.protocol import BodyRow, Reader

UNINDEXED_MAX = 1_000
SAME_MAX = 200


_ROLE = re.compile(r"(?:my|our|your|his|her|its|their)\s|\S.*['’]s?\s", re.IGNORECASE)


def identifying(name: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return the names by which something can be told from others.

    "My sister" leads to somebody, but two people may be it, one after the other or both.
    """
    return (name, *(alias for alias in aliases if not _ROLE.match(alias)))


class Resolving:
    """Resolves drafts on one snapshot, inside one world."""

    def __init__(
        self, reader: Reader, view: View, resolver: Resolver, settings: ResolverSettings
    ) -> None:
        self.reader = reader
        self.view = view
        self._resolver = resolver
        self._settings = settings
        self._population = Population(reader.lookups.names(), self._holding)

    def verdict(self, node: DraftNode) -> Outcome:
        """Return what the resolver says of a drafted node."""
        named = Named(
            key=node.key,
            type=node.type,
            names=identifying(node.name, node.aliases),
            attributes=node.attributes,
        )
        return self.of(named, set())

    def of(self, named: Named, apart: set[int]) -> Outcome:
        """Return what the resolver says of something named, rows `apart` from it left out."""
        rows = self._rows(named.names) - apart
        options = self._named(self._bodies(rows))
        return self._resolver.resolve(named, options, self._population)

    def named(self, row: int) -> Named | None:
        """Return a node of the store as the resolver sees it; None if it has no name."""
        found = self._named(self._bodies([row]))
        return found[0] if found else None

    def _holding(self, word: str) -> int:
        """Return about how many names hold a word."""
        return self.reader.lookups.count(name_number(f"w:{word}"))

    def same_content(self, node: DraftNode, parent: int) -> int | None:
        """Return the row of a live node of `parent` that says the same already."""
        number = content_key(node.type, node.content)
        rows = self.reader.lookups.find([number], SAME_MAX)[number] + self._unindexed()
        seen = self.view.keep(rows)
        for body in self.reader.bodies(sorted(seen)):
            if body.parent == parent and (body.type, body.content) == (node.type, node.content):
                if body.name == node.name:
                    return body.row
        return None

    def _rows(self, names: Sequence[str]) -> set[int]:
        most = self._settings.key_names_max
        shared: Counter[int] = Counter()
        for name in names:
            keys = {key: name_number(key) for key in block_keys(name)}
            found = self.reader.lookups.find(sorted(keys.values()), most + 1)
            for key, number in keys.items():
                # A key that finds more says nothing about who is meant, unless it is the name.
                if len(found[number]) <= most or key.startswith("="):
                    shared.update(found[number][:most])
        seen = self.view.keep([*shared, *self._unindexed()])
        best = sorted(seen, key=lambda row: (-shared[row], row))
        return set(best[: self._settings.options_max])

    def _unindexed(self) -> list[int]:
        """Return the rows of what was written since the index was brought up to date."""
        node, _ = self.reader.lookups.reached()
        return list(range(node + 1, self.reader.head().nodes + 1))[-UNINDEXED_MAX:]

    def _bodies(self, rows: Iterable[int]) -> list[BodyRow]:
        found = self.reader.bodies(sorted(rows))
        return [body for body in found if body.name and body.type not in NOT_NAMED]

    def _named(self, bodies: list[BodyRow]) -> list[Named]:
        aliases: dict[int, list[str]] = {}
        for row, alias in self.reader.aliases([body.row for body in bodies]):
            aliases.setdefault(row, []).append(alias)
        return [
            Named(
                key=body.row,
                type=body.type,
                names=identifying(body.name, aliases.get(body.row, ())),
            )
            for body in bodies
        ]
