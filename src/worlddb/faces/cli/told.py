"""Told: what a command that wrote has to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from worlddb.faces.cli.scoping import scopes_text
from worlddb.faces.cli.terminal import paint, print_fields, print_json

if TYPE_CHECKING:
    from worlddb.memory.results import Retired, Written


def print_written(done: Written, *, as_json: bool) -> None:
    """Print what a write or an amendment did."""
    seq = None if done.commit is None else done.commit.seq
    if as_json:
        print_json(done.to_dict() | {"commit": seq})
        return
    if done.created:
        print(paint(f"remembered {done.id.short}", "green"))
    else:
        print(f"known already: {done.id.short}")
    print_fields(
        [
            ("scopes", scopes_text(done.scopes)),
            (
                "entities",
                ", ".join(f"{one.name}{' (new)' if one.created else ''}" for one in done.entities),
            ),
            (
                "proposals",
                ", ".join(
                    f"{one.left.short} = {one.right.short}? ({one.tier} {one.score:.2f})"
                    for one in done.proposals
                ),
            ),
            ("superseded", ", ".join(one.short for one in done.superseded)),
            ("waits", f"{done.pending}; see worlddb extract --pending" if done.pending else ""),
            ("commit", "" if seq is None else str(seq)),
            ("root_state", str(done.root_state)),
        ]
    )


def print_retired(done: Sequence[Retired], *, as_json: bool) -> None:
    """Print what ended, of one retirement or several."""
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
        [("commit", "" if seq is None else str(seq)), ("root_state", str(last.root_state))]
    )
