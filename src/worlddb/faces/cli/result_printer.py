"""Printers: the results of calls as text for people or as JSON, and changes of the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from worlddb.faces.cli.terminal import (
    paint,
    preview,
    print_fields,
    print_hint,
    print_json,
    print_table,
    second,
)

if TYPE_CHECKING:
    from worlddb.audit.undo import Undone
    from worlddb.memory.results import (
        ConflictPage,
        MemoryPage,
        PromptContext,
        Remembered,
        Retired,
        ScopePage,
        Written,
    )
    from worlddb.model.records import Change, Edge, Identity, ScopeName
    from worlddb.query.pipeline import Subgraph

TIME_KEYS = {"valid_from", "valid_to"}
SHORT_DIGITS = 12  # As many as `Id.short` shows.
ID_DIGITS = 64


def print_result(result: Any, *, as_json: bool, empty: str = "nothing found") -> None:
    """Print the result of a call; one without a printer here is printed as JSON."""
    name = type(result).__name__
    if name in PRINTERS:
        PRINTERS[name](result, as_json, empty)
    else:
        print_json(result.to_dict())


def print_written(done: Written, as_json: bool, _: str = "") -> None:
    """Print what a write or an amendment did."""
    seq = None if done.commit is None else done.commit.seq
    if as_json:
        print_json(done.to_dict() | {"commit": seq})
        return
    if done.created:
        print(paint(f"remembered {done.id.short}", "green"))
    elif done.commit is not None:  # A document again: some of its passages are others.
        print(paint(f"updated {done.id.short}", "green"))
    else:
        print(f"known already: {done.id.short}")
    entities = [f"{one.name}{' (new)' if one.created else ''}" for one in done.entities]
    proposals = [
        f"{one.left.short} = {one.right.short}? ({one.tier} {one.score:.2f})"
        for one in done.proposals
    ]
    print_fields(
        [
            ("scopes", scopes_text(done.scopes)),
            ("entities", ", ".join(entities)),
            ("proposals", ", ".join(proposals)),
            ("superseded", ", ".join(one.short for one in done.superseded)),
            ("left_out", "; ".join(done.left_out)),
            ("waits", f"{done.pending}; see worlddb extract --pending" if done.pending else ""),
            ("commit", "" if seq is None else str(seq)),
            ("root_state", done.root_state.short),
        ]
    )


def print_context(found: PromptContext, as_json: bool, empty: str = "") -> None:
    """Print the text for a prompt, and nothing else."""
    if as_json:
        print_json(found.to_dict())
    elif found:
        print(found.text)
    else:
        print_hint(empty)


def print_retired(done: Sequence[Retired], as_json: bool) -> None:
    """Print what ended, in one retirement or several."""
    ids = [ident for one in done for ident in one.ids]
    scopes = [scope for one in done for scope in one.scopes]
    last = done[-1]
    seq = max((one.commit.seq for one in done if one.commit is not None), default=None)
    if as_json:
        print_json(
            {
                "ids": [str(ident) for ident in ids],
                "scopes": [scope.to_dict() for scope in scopes],
                "commit": seq,
                "root_state": str(last.root_state),
            }
        )
        return
    what = "1 node" if len(ids) == 1 else f"{len(ids):,} nodes"
    also = f" and {scopes_text(scopes)}" if scopes else ""
    print(f"ended {what}{also}" if ids or scopes else "had ended already")
    print_fields(
        [("commit", "" if seq is None else str(seq)), ("root_state", last.root_state.short)]
    )


def print_memories(page: MemoryPage, as_json: bool, empty: str) -> None:
    """Print a page of memories; the columns of ends and actors only where they tell something."""
    if as_json:
        print_json(page.to_dict())
        return
    ended = any(memory.valid_to is not None for memory in page)
    several = len({memory.actor for memory in page}) > 1

    def row(memory: Remembered) -> tuple[str, ...]:
        until = (second(memory.valid_to),) if ended else ()
        whose = (scopes_text(memory.scopes), *((memory.actor,) if several else ()))
        return (memory.id.short, second(memory.valid_from), *until, *whose, preview(memory.text))

    until, whose = ("valid_to",) if ended else (), ("actor",) if several else ()
    headers = ("id", "valid_from", *until, "scopes", *whose, "text")
    _print_page(headers, [row(memory) for memory in page], page.next_cursor, empty)


def print_scopes(page: ScopePage, as_json: bool, empty: str) -> None:
    """Print a page of scopes."""
    if as_json:
        print_json(page.to_dict())
        return
    rows = [
        (one.id.short, one.kind, second(one.known_from), "yes" if one.retired else "no", one.value)
        for one in page
    ]
    _print_page(("id", "kind", "known_from", "purged", "value"), rows, page.next_cursor, empty)


def _print_page(
    headers: Sequence[str], rows: Sequence[Sequence[str]], cursor: str | None, empty: str
) -> None:
    if rows:
        print_table(headers, rows)
    else:
        print_hint(empty)
    if cursor:
        print_hint(f"there are more: --cursor {cursor}")


def print_subgraph(found: Subgraph, as_json: bool, empty: str) -> None:
    """Print the answer to a query: its nodes, then the edges that it followed."""
    if as_json:
        print_json(found.to_dict())
        return
    rows = [
        (node.id.short, node.type, second(node.valid_from), preview(node.content or node.name))
        for node in found
    ]
    _print_page(("id", "type", "valid_from", "text"), rows, None, empty)
    if found.edges:
        print()
        edges = [
            (one.id.short, one.source.short, one.type, one.target.short) for one in found.edges
        ]
        print_table(("edge", "source", "type", "target"), edges)
    if found.cut is not None:
        print_hint(found.cut)


def print_edge(edge: Edge, as_json: bool, _: str = "") -> None:
    """Print an edge that was written or deleted."""
    if as_json:
        print_json(edge.to_dict())
        return
    done = "linked" if edge.known_to is None else "unlinked"
    print(paint(f"{done} {edge.id.short}", "green"))
    print_fields([("source", str(edge.source)), ("type", edge.type), ("target", str(edge.target))])


def print_undone(done: Undone, as_json: bool, _: str = "") -> None:
    """Print what an undo did, or would do."""
    if as_json:
        print_json(done.to_dict())
        return
    named = ", ".join(map(str, done.commits))
    if done.commit is None and not done.dry_run:
        print(f"commit {named}: nothing is left to undo")
    else:
        would = "would be " if done.dry_run else ""
        again = f"; to bring it back: worlddb undo {done.commit.seq}" if done.commit else ""
        print(f"commit {named} {would or 'was '}undone{again}")
    rows: list[tuple[str, str, str]] = [
        ("restored", one.old.short, "" if one.new is None else f"lives as {one.new.short}")
        for one in done.restored
    ]
    rows += [("retired", one.short, "") for one in done.retired]
    rows += [("kept", one.id.short, one.reason) for one in done.kept]
    if rows:
        print_table(("what", "id", "about"), rows)


def print_conflicts(page: ConflictPage, as_json: bool, empty: str) -> None:
    """Print which memories cannot both be right."""
    if as_json:
        print_json(page.to_dict())
        return
    rows = [
        (one.edge.short, preview(one.left_text), preview(one.right_text), preview(one.reason))
        for one in page
    ]
    _print_page(("edge", "left", "right", "reason"), rows, None, empty)
    if page.left:
        print_hint(f"there are {page.left} more: --limit N")


def print_identity(found: Identity, as_json: bool, _: str = "") -> None:
    """Print what was accepted as the same as a name."""
    if as_json:
        print_json(found.to_dict())
        return
    rows = [(node.id.short, node.type, preview(node.name)) for node in found.nodes]
    print_table(("id", "type", "name"), rows)
    print_fields(
        [
            ("names", ", ".join(found.names)),
            ("provenance", ", ".join(found.provenance)),
            ("merges", ", ".join(one.edge.short for one in found.merges)),
        ]
    )


PRINTERS: dict[str, Callable[[Any, bool, str], None]] = {
    "Written": print_written,
    "Retired": lambda done, as_json, _: print_retired([done], as_json),
    "MemoryPage": print_memories,
    "ScopePage": print_scopes,
    "Subgraph": print_subgraph,
    "Edge": print_edge,
    "Undone": print_undone,
    "PromptContext": print_context,
    "ConflictPage": print_conflicts,
    "Identity": print_identity,
}
"""The printer of each class of results."""


def scopes_text(scopes: Iterable[ScopeName]) -> str:
    """Return scopes on one line."""
    return ", ".join(str(scope) for scope in scopes)


def change_dict(change: Change) -> dict[str, Any]:
    """Return a change as JSON data; the journal keeps its times as microseconds."""
    plain = change.to_dict()
    plain["detail"] = {key: _readable(key, value) for key, value in plain["detail"].items()}
    return plain


def change_text(change: Change) -> str:
    """Return a change's details on one line, ids shortened."""
    details = change_dict(change)["detail"]
    return ", ".join(f"{key} {_shortened(value)}" for key, value in details.items())


def _readable(key: str, value: Any) -> Any:
    from worlddb.model.inputs import from_micros

    return from_micros(value).isoformat() if key in TIME_KEYS and type(value) is int else value


def _shortened(value: Any) -> str:
    text = str(value).replace("+00:00", "Z")
    return text[:SHORT_DIGITS] if len(text) == ID_DIGITS and text.isalnum() else text
