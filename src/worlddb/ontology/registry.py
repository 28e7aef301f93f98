"""Registry: the handler of an edge type in a world, and declared edge types.

A lookup goes up from a world to the root and ends at the defaults. So an inner registration wins,
and applies to the whole interior. Handlers come from four sources, all treated alike: the built-in
types, packages with an entry point, `db.ontology(world).register`, and declarations recorded in the
store (`db.ontology(world).declare`).

A declared type is plain data and needs no program. The declaration is stored as the version of the
registration, so every process that opens the store can write the type:

    {"type": "manages", "acyclic": true, "inverse": "managed_by"}  ──▶ EdgeDeclaration ──▶ handler

D1  `inverse` and `symmetric` write a mirror edge: inferred, with the stated edge as its premise. So
    the mirror ends with the stated edge, and a mirror has no mirror.
D2  `newer_ends_older` makes one time line per source, in any order of writing: of two edges, the
    earlier one ends when the later one begins.
D3  The consolidator applies `transitive`, and `functional` without `newer_ends_older`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, NamedTuple

from worlddb.errors import InvalidInputError, ProviderError, WorldDBError
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import Limits, Plain, check_type, encode_text
from worlddb.model.records import Edge, Op, Query, with_fields
from worlddb.ontology.edge_types import (
    EdgeHandler,
    WriteContext,
    default_handlers,
    refuse_circles,
    refuse_cycle,
    retire_inferred,
)

DECLARED = "declared:"
"""Prefix of the recorded version of a declared type; the declaration as JSON follows."""
RecordedType = tuple[bytes, str, str, bool]
"""A world, a type, its version, and whether the type is functional."""
DECLARED_MAX = 1_000
"""Types that one world may declare: more than vocabularies of the web have, and every process that
opens the store reads all of them."""
MIRROR = "mirror"
"""Metadata key of the edges that `inverse` and `symmetric` write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDeclaration(Plain):
    """An edge type as plain data.

    `functional`: a source has one live target; further ones are flagged as contradictions.
    `newer_ends_older`: a newer edge of a source ends the older ones; includes `functional`.
    `symmetric`: the edge holds in both directions. `inverse`: the type of the same edge read from
    its target. `transitive`: consolidation infers a → c from a → b and b → c. `acyclic`: an edge
    that closes a cycle is refused. `pierces`: a traversal may leave the active world.

    Raises:
        InvalidInputError: a trait has a wrong value, or two traits exclude each other.
    """

    type: str
    functional: bool = False
    newer_ends_older: bool = False
    symmetric: bool = False
    transitive: bool = False
    acyclic: bool = False
    inverse: str | None = None
    pierces: bool = False

    def __post_init__(self) -> None:
        check_type(self.type, Limits())
        if self.inverse is not None:
            check_type(self.inverse, Limits())
        for name in TRAITS:
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(f"{name}: give true or false, not {getattr(self, name)!r}")
        if self.symmetric and self.acyclic:
            raise InvalidInputError("a symmetric type runs in circles; leave out acyclic")
        if self.symmetric and self.inverse not in (None, self.type):
            raise InvalidInputError("a symmetric type is its own inverse; leave out inverse")
        if self.newer_ends_older and not self.functional:
            object.__setattr__(self, "functional", True)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EdgeDeclaration:
        """Return the declaration from JSON data or a table of a settings file.

        Raises:
            InvalidInputError: no type, an unknown trait, or a wrong value.
        """
        if not isinstance(data, Mapping) or "type" not in data:
            raise InvalidInputError(f"an edge type is an object with a type, not {data!r:.100}")
        names = {field.name for field in fields(cls)}
        unknown = sorted({str(key) for key in data} - names)
        if unknown:
            raise InvalidInputError(
                f"unknown trait {', '.join(unknown)}; use {', '.join(sorted(names - {'type'}))}"
            )
        return cls(**data)

    @property
    def version(self) -> str:
        """The declaration as the store records it: its traits in canonical JSON."""
        traits = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("type", "functional")
            and getattr(self, field.name) not in (False, None)
        }
        return DECLARED + json.dumps(traits, sort_keys=True, separators=(",", ":"))

    @property
    def turned(self) -> EdgeDeclaration | None:
        """The declaration of the inverse type; None if there is none."""
        if self.inverse is None or self.inverse == self.type:
            return None
        return replace(
            self,
            type=self.inverse,
            inverse=self.type,
            functional=False,
            newer_ends_older=False,
        )


TRAITS = ("functional", "newer_ends_older", "symmetric", "transitive", "acyclic", "pierces")


def recorded_declaration(type_: str, version: str, functional: bool) -> EdgeDeclaration | None:
    """Return the declaration in a recorded version; None if a program recorded the version.

    Traits of a newer release are ignored, so the store can still be read.
    """
    if not version.startswith(DECLARED):
        return None
    try:
        traits = json.loads(version.removeprefix(DECLARED))
        known = {key: traits[key] for key in traits if key in (*TRAITS, "inverse")}
        return EdgeDeclaration(**{"type": type_, "functional": functional} | known)
    except (ValueError, TypeError, AttributeError):
        return None  # A custom handler whose version has the same prefix.


class DeclaredType:
    """The handler of a declared edge type."""

    def __init__(self, declaration: EdgeDeclaration) -> None:
        self.declaration = declaration
        self.type = declaration.type
        self.pierces = declaration.pierces
        self.version = declaration.version

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a cycle; end older edges; write the mirror."""
        if self.declaration.acyclic:
            refuse_cycle(ctx, edge)
        self._follow_up(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """Do the same for a batch."""
        if self.declaration.acyclic:
            refuse_circles(ctx, edges)
        if self.declaration.newer_ends_older or self._mirror is not None:
            for edge in edges:
                self._follow_up(ctx, edge)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Delete the mirror, and the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """Return the query unchanged, except for piercing."""
        return query

    @property
    def _mirror(self) -> str | None:
        """The type of the mirror edges."""
        return self.type if self.declaration.symmetric else self.declaration.inverse

    def _follow_up(self, ctx: WriteContext, edge: Edge) -> None:
        if self.declaration.newer_ends_older:
            self._one_time_line(ctx, edge)
        if self._mirror is not None and not edge.metadata.get("inferred"):
            self._write_mirror(ctx, ctx.get_edge(edge.id), self._mirror)

    def _one_time_line(self, ctx: WriteContext, edge: Edge) -> None:
        """Let the edges of one source follow each other; equal beginnings follow by writing."""
        for other in ctx.edges(edge.source, "out", (self.type,)):
            if other.id == edge.id or other.target == edge.target:
                continue
            older, newer = sorted((other, edge), key=lambda it: (it.valid_from, it is edge))
            if ctx.edge_outranks(older, newer):
                continue
            if older.valid_to is None or older.valid_to > newer.valid_from:
                for ended in (older, *ctx.resting_on(older.id)):
                    ctx.close_validity(ended.id, at=newer.valid_from)

    def _write_mirror(self, ctx: WriteContext, edge: Edge, type_: str) -> None:
        """Write the edge as seen from its target, unless a caller has stated that edge."""
        there = ctx.edges(edge.target, "out", (type_,))
        if edge.source == edge.target or any(
            it.target == edge.source and it.valid_from <= edge.valid_from and it.valid_to is None
            for it in there
        ):
            return
        ctx.write_edge(
            type_,
            edge.target,
            edge.source,
            valid_from=edge.valid_from,
            valid_to=edge.valid_to,
            metadata={"inferred": True, MIRROR: True, "premises": [str(edge.id)]},
        )


ENTRY_POINTS = "worlddb.edge_types"
VERSION_BYTES_MAX = 256
"""Characters; enough for a version number with a commit hash. Every registration stores it."""

QUERIES_CACHED = 256  # the queries of one program use few sets of edge types

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # A library logs nothing unless the program asks for it.


class PackageHandlers(NamedTuple):
    """The handlers of installed packages, and the errors of those that failed to load, by name."""

    handlers: tuple[EdgeHandler, ...] = ()
    broken: Mapping[str, str] = MappingProxyType({})


def package_handlers() -> PackageHandlers:
    """Return the handlers that installed packages offer by entry point.

    A handler that cannot be loaded does not stop the store from opening; only its type cannot be
    written.
    """
    found: list[EdgeHandler] = []
    broken: dict[str, str] = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            offered = point.load()
            handler = check_handler(offered() if isinstance(offered, type) else offered)
            encode_text(version_of(handler), "version", VERSION_BYTES_MAX)
            found.append(handler)
        except Exception as error:  # A third-party module may raise anything.
            broken[point.name] = f"{type(error).__name__}: {error}"
            log.warning(
                "edge type %r (%s) could not be loaded: %s",
                point.name,
                point.value,
                broken[point.name],
            )
    return PackageHandlers(tuple(found), broken)


def version_of(handler: EdgeHandler) -> str:
    """Return the version of a handler as recorded in the store."""
    return str(getattr(handler, "version", "1"))


def check_handler(handler: object) -> EdgeHandler:
    """Return `handler` if it has every member of the protocol."""
    if isinstance(handler, type):
        raise InvalidInputError(f"{handler!r} is a class; give an edge handler made of it")
    wanted = ("type", "pierces", "on_insert", "on_delete", "on_query_rewrite")
    missing = [name for name in wanted if not hasattr(handler, name)]
    if missing:
        raise InvalidInputError(
            f"{handler!r} is not an edge handler: it lacks {', '.join(missing)}"
        )
    assert isinstance(handler, EdgeHandler)
    check_type(handler.type, Limits())
    return handler


NO_PACKAGES = PackageHandlers()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A registered type as recorded in the store; the program itself is in a package."""

    world: Id
    type: str
    version: str
    functional: bool

    @classmethod
    def of(cls, row: RecordedType) -> Registration:
        """Return the registration that a row of the store says."""
        world, type_, version, functional = row
        return cls(world=Id(world), type=type_, version=version, functional=functional)

    @property
    def declaration(self) -> EdgeDeclaration | None:
        """The declaration of a declared type; None if a program handles the type."""
        return recorded_declaration(self.type, self.version, self.functional)


class Registry:
    """The handlers of one open store: registered ones by world, and the defaults."""

    def __init__(
        self, handlers: Iterable[EdgeHandler], packages: PackageHandlers = NO_PACKAGES
    ) -> None:
        self._packages = packages
        self._defaults = {handler.type: handler for handler in default_handlers()}
        self._loaded: dict[bytes, dict[str, EdgeHandler]] = {ROOT_ID: {}}
        self._recorded: dict[bytes, dict[str, Registration]] = {}
        self._declared: dict[bytes, dict[str, EdgeHandler]] = {}
        self._rows: Sequence[RecordedType] = ()
        self.recorded_at = -1
        """The commit up to which registrations are loaded; another process may have added some."""
        for handler in (*packages.handlers, *handlers):
            self._loaded[ROOT_ID][handler.type] = handler
        self.offers_types = bool(packages.handlers)
        """Whether packages offer types, which the store records with their first edge."""
        self._settle()

    def _settle(self) -> None:
        """Precompute the answers that every write needs."""
        self.is_flat = len(self._loaded) == 1 and set(self._recorded) <= {ROOT_ID}
        """Whether only the root has handlers, so that a lookup need not go up."""
        absent = self._recorded.get(ROOT_ID, {}).keys() | self._packages.broken.keys()
        usual = {type_: one for type_, one in self._defaults.items() if type_ not in absent}
        self.everywhere = usual | self._handlers(ROOT_ID) if self.is_flat else {}
        """Handlers of types that have the same handler in all worlds; `find` handles the others."""
        has_own = not self.is_flat or bool(self._handlers(ROOT_ID))
        self.usual_switches = {} if has_own else USUAL_SWITCHES
        """`USUAL_SWITCHES` if all types are built-in, else empty."""

    def load(self, world: Id, handler: EdgeHandler) -> None:
        """Register `handler` for its type in `world` and its interior."""
        self._loaded.setdefault(world, {})[handler.type] = handler
        self._settle()

    def loaded(self) -> list[tuple[Id, EdgeHandler]]:
        """Return the handlers that this process has loaded, each with its world."""
        return [(Id(world), one) for world, found in self._loaded.items() for one in found.values()]

    def record(self, rows: Sequence[RecordedType]) -> None:
        """Replace the recorded registrations by those that the store has now.

        The handler of a declared type is made here, because it needs no program. Nearly all commits
        change none of them.
        """
        if rows == self._rows:
            return
        recorded: dict[bytes, dict[str, Registration]] = {}
        declared: dict[bytes, dict[str, EdgeHandler]] = {}
        for row in rows:
            item = Registration.of(row)
            recorded.setdefault(item.world, {})[item.type] = item
            if (declaration := item.declaration) is not None:
                declared.setdefault(item.world, {})[item.type] = DeclaredType(declaration)
        self._recorded, self._declared, self._rows = recorded, declared, rows
        self._settle()

    def find(self, edge_type: str, worlds: Iterable[bytes]) -> EdgeHandler:
        """Return the handler of `edge_type` for the innermost of `worlds` (inner first)."""
        for world in worlds:
            handler = self._handlers(world).get(edge_type)
            if handler is not None:
                return handler
            recorded = self._recorded.get(world, {}).get(edge_type)
            if recorded is not None:
                raise InvalidInputError(
                    f"edge type {edge_type!r} (version {recorded.version}) is recorded in this "
                    f"store, but its handler is not loaded{self._why(edge_type)}; install the "
                    "package that offers it or register it with "
                    "db.ontology(world).register(handler)"
                )
        if edge_type in self._packages.broken:
            raise InvalidInputError(
                f"edge type {edge_type!r} is offered by a package, but its handler is not "
                f"loaded{self._why(edge_type)}; mend or remove that package, or register another "
                "handler with db.ontology(world).register(handler)"
            )
        if edge_type in self._defaults:
            return self._defaults[edge_type]
        known = ", ".join(sorted(self._handlers(ROOT_ID) | self._defaults))
        broken = "".join(f"; {name!r}{self._why(name)}" for name in sorted(self._packages.broken))
        raise InvalidInputError(
            f"unknown edge type {edge_type!r}; known here: {known}{broken}; a custom type needs "
            "db.ontology(world).declare(type) or db.ontology(world).register(handler) first"
        )

    def _handlers(self, world: bytes) -> dict[str, EdgeHandler]:
        """Return the handlers of one world alone; a handler loaded by this process wins."""
        loaded, declared = self._loaded.get(world, {}), self._declared.get(world, {})
        return declared | loaded if declared else loaded

    def _why(self, edge_type: str) -> str:
        """Return the reason why a package's handler could not be loaded, in brackets."""
        cause = self._packages.broken.get(edge_type)
        return "" if cause is None else f" (could not be loaded: {cause})"

    def unrecorded(self, handler: EdgeHandler) -> Registration | None:
        """Return the registration to record for a package's type; None if it is recorded."""
        if not any(handler is one for one in self._packages.handlers):
            return None
        before = self._recorded.get(ROOT_ID, {}).get(handler.type)
        if before is not None and before.version == version_of(handler):
            return None
        return Registration(
            world=ROOT_ID,
            type=handler.type,
            version=version_of(handler),
            functional=before is not None and before.functional,
        )

    def visible(self, worlds: Iterable[bytes]) -> Iterator[EdgeHandler]:
        """Yield the handlers that apply in the innermost of `worlds`, by type."""
        chosen: dict[str, EdgeHandler] = {}
        for world in worlds:
            for edge_type, handler in self._handlers(world).items():
                chosen.setdefault(edge_type, handler)
        for edge_type, handler in self._defaults.items():
            chosen.setdefault(edge_type, handler)
        for edge_type in sorted(chosen):
            yield chosen[edge_type]

    def rewritten(self, query: Query, worlds: Iterable[bytes]) -> Query:
        """Return the query after the rewrites of all handlers of the innermost of `worlds`.

        Raises:
            ProviderError: a handler failed, or returned something other than a query.
        """
        around = list(worlds)
        if not any(map(self._handlers, around)) and _switches(query) == _NO_SWITCHES:
            steps = (op.types for op in query.ops if op.kind == "traverse")
            walked = frozenset(type_ for types in steps for type_ in types)
            switches = _default_switches(walked, query.include_superseded, query.prefer_summaries)
            return with_fields(query, **switches)
        return _rewritten_by(self.visible(around), query)

    def is_functional(self, edge_type: str, worlds: Iterable[bytes]) -> bool:
        """Return whether the innermost registration of `edge_type` allows one live target only."""
        for world in worlds:
            recorded = self._recorded.get(world, {}).get(edge_type)
            if recorded is not None:
                return recorded.functional
            if edge_type in self._loaded.get(world, {}):
                return False
        return False


SWITCHES = tuple(
    one.name
    for one in fields(Query)
    if one.name
    not in (
        "seeds",
        "text",
        "match",
        "vector",
        "ops",
        "world",
        "as_of",
        "include_superseded",
        "prefer_summaries",
        "limit",
    )
)
"""The fields of a query that only handlers change."""


def _switches(query: Query) -> tuple[Any, ...]:
    return tuple(getattr(query, name) for name in SWITCHES)


_NO_SWITCHES = _switches(Query())


@lru_cache(maxsize=QUERIES_CACHED)
def _default_switches(
    walked: frozenset[str], include_superseded: bool, prefer_summaries: bool
) -> dict[str, Any]:
    """Return the fields that the built-in types set, given all fields that they read."""
    query = Query(
        ops=(Op(kind="traverse", types=tuple(walked)),),
        include_superseded=include_superseded,
        prefer_summaries=prefer_summaries,
    )
    ordered = sorted(default_handlers(), key=lambda handler: handler.type)
    return dict(zip(SWITCHES, _switches(_rewritten_by(ordered, query)), strict=True))


def _rewritten_by(handlers: Iterable[EdgeHandler], query: Query) -> Query:
    """Return the query after the rewrite of each handler in turn."""
    for handler in handlers:
        query = _rewritten(handler, query)
        if handler.pierces:
            query = replace(query, pierces=query.pierces | {handler.type})
    return query


def _rewritten(handler: EdgeHandler, query: Query) -> Query:
    """Return the query after the rewrite of one handler."""
    try:
        found: object = handler.on_query_rewrite(query)
    except WorldDBError:
        raise
    except Exception as error:  # A custom handler may raise anything.
        raise ProviderError(
            f"edge type {handler.type!r}: its on_query_rewrite failed: "
            f"{type(error).__name__}: {error}; mend the handler, or register another one"
        ) from error
    if not isinstance(found, Query):
        raise ProviderError(
            f"edge type {handler.type!r}: its on_query_rewrite returned {found!r:.40}; it must "
            "return the query that it got, or dataclasses.replace(query, …)"
        )
    return found


USUAL_SWITCHES: Mapping[bool, Mapping[str, Any]] = {
    ended: _default_switches(frozenset(), ended, False) for ended in (False, True)
}
"""How the built-in types rewrite a query without walks, by whether it includes ended nodes."""
