"""Pin calls: the calls that pin a memory and take its pin away."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter


def pin_calls(ident: Parameter, scopes: tuple[Parameter, ...]) -> tuple[Call, ...]:
    """Return the calls; every one takes an id and scopes."""
    return (
        Call(
            name="pin",
            title="Pin a memory",
            summary="Give a memory first, whatever the question",
            help="Pin a memory, so that {context} gives it first: a standing instruction or fact.",
            parameters=(ident, *scopes),
            result="Remembered",
            effect="change",
            path="/v1/memories/{id}/pin",
            tool="memory_pin",
            toolset="graph",
            command="pin",
            examples=("pin 3f2a",),
        ),
        Call(
            name="unpin",
            title="Unpin a memory",
            summary="Take the pin from a memory",
            help="Take the pin from a memory. It stays remembered, and {context} may leave it out.",
            parameters=(ident, *scopes),
            result="Remembered",
            effect="change",
            path="/v1/memories/{id}/unpin",
            tool="memory_unpin",
            toolset="graph",
            command="unpin",
            examples=("unpin 3f2a",),
        ),
    )
