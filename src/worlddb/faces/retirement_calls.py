"""Retirement calls: the calls that end memories, and the one that erases them."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

RECEIPT = Parameter(name="receipt", type="flag", default=False, in_command=False, help="")


def retirement_calls(
    ident: Parameter,
    scopes: tuple[Parameter, ...],
    end_at: Parameter,
    where: Parameter,
    confirm: Parameter,
) -> tuple[Call, ...]:
    """Return the calls; every one takes scopes."""
    return (
        Call(
            name="retire",
            title="Retire a memory",
            summary="End one memory",
            help="""\
End one memory that is no longer true or no longer wanted, with nothing in its place.

If something else is true instead, use {amend}.""",
            parameters=(ident, *scopes, end_at),
            result="Retired",
            effect="end",
            path="/v1/memories/{id}/retire",
            tool="memory_retire",
            command="retire",
        ),
        Call(
            name="retire_all",
            title="Retire all memories of a scope",
            summary="End every memory in a scope",
            help="""\
End every memory in a scope; the scope itself stays. Only if the user asked for it.

Name the scope; several ids mean what is in all of them.""",
            parameters=(*scopes, where._replace(tool_help="As in memory_recall."), confirm, end_at),
            result="Retired",
            effect="end",
            question="End every memory in {scope}? They can still be read, but never come back.",
            path="/v1/retire_all",
            tool="memory_retire_all",
            command="retire",
        ),
        Call(
            name="purge_scope",
            title="Purge a scope",
            summary="End a scope with everything in it",
            help="""\
End a whole scope and every memory in it, also those shared with other scopes.

Only if the user asked for it. Name exactly one scope.""",
            parameters=(*scopes, confirm),
            result="Retired",
            effect="end",
            question="End {scope} and every memory in it? They can still be read, but never come "
            "back.",
            one_scope=True,
            path="/v1/purge_scope",
            tool="memory_purge_scope",
            command="scopes",
        ),
    )


def erasure_calls(
    ident: Parameter, scopes: tuple[Parameter, ...], confirm: Parameter
) -> tuple[Call, ...]:
    """Return the calls that hand over a scope, and remove texts for good."""
    return (
        Call(
            name="erase",
            title="Erase for good",
            summary="Remove the text of a memory, or of a scope, for good",
            help="""\
Remove one memory, or everything that lives in one scope, for good: text, sources and traces.

With `id`: that memory and what was derived from it. Without: the scope, which has to be confirmed.
The answer says what was erased. Nothing of it can be read again, and it cannot be undone.""",
            parameters=(
                # A model may only ask for a whole scope, which a person confirms.
                ident._replace(required=False, in_command=False, in_tool=False),
                *scopes,
                confirm,
                RECEIPT._replace(help="Also return a signed receipt of what was erased."),
            ),
            result="Receipt",
            effect="end",
            question="Erase {scope} for good, with everything in it? It cannot be read again.",
            one_scope=True,
            path="/v1/erase",
            tool="memory_erase",
            toolset="graph",
            command="erase",
        ),
        Call(
            name="export",
            title="Export a scope",
            summary="Hand over everything that is remembered for one person",
            help="""\
Return everything in one scope, retired or not: memories with their whole texts, and files.""",
            parameters=(
                RECEIPT._replace(help="Also return a signed receipt of what was exported."),
                *scopes,
                confirm,
            ),
            result="ScopeExport",
            effect="read",
            question="Hand over everything that is remembered in {scope}, with its files?",
            one_scope=True,
            method="GET",
            path="/v1/export",
            tool="memory_export",
            toolset="graph",
            command="export",
        ),
    )
