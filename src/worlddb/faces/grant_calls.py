"""Grant calls: who outside a scope may read it or write into it, and what is refused."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

SCOPE_NAME_CHARS_MAX = 520  # A value of 512 characters after its kind.


def grant_calls(
    ident: Parameter, scopes: tuple[Parameter, ...], confirm: Parameter
) -> tuple[Call, ...]:
    """Return the calls; every one takes scopes. A person confirms what a model opens."""
    return (
        Call(
            name="grants",
            title="List grants",
            summary="List who may read or write in whose scope",
            help="List the grants that a scope has given or got: who may read it or write into it.",
            parameters=(
                *scopes,
                Parameter(
                    name="include_ended",
                    type="flag",
                    default=False,
                    help="Also return grants that were revoked or whose time is over.",
                    tool_help="Also ended ones.",
                ),
            ),
            result="Grants",
            effect="read",
            method="GET",
            path="/v1/grants",
            tool="memory_grants",
            toolset="graph",
            command="grants",
        ),
        _grant_call(scopes, confirm),
        Call(
            name="revoke",
            title="Revoke a grant",
            summary="End a grant",
            help="End a grant, or a refusal, by its id; {grants} lists them. It can still be read.",
            parameters=(ident, *scopes),
            result="Grant",
            effect="change",
            path="/v1/grants/{id}/revoke",
            tool="memory_revoke",
            toolset="graph",
            command="grants",
        ),
        Call(
            name="refuse",
            title="Refuse what others wrote",
            summary="Take what somebody else wrote into a scope out of it",
            help="""\
Take a memory that somebody else wrote into a scope out of it, and take no more of them there.

The memory stays with its writer, whose grants to write here end.""",
            parameters=(ident, *scopes),
            result="Retired",
            effect="change",
            path="/v1/memories/{id}/refuse",
            tool="memory_refuse",
            toolset="graph",
            command="grants",
        ),
    )


def _grant_call(scopes: tuple[Parameter, ...], confirm: Parameter) -> Call:
    return Call(
        name="grant",
        title="Grant a right",
        summary="Let somebody else read or write in a scope",
        help="""\
Let callers who are bound to another scope read one scope, or write into it, until it is revoked.

What they write is shown as theirs. {revoke} ends a grant; {refuse} takes a text out again.""",
        parameters=(
            Parameter(
                name="to",
                type="text",
                required=True,
                positional=True,
                most=SCOPE_NAME_CHARS_MAX,
                help='Who gets the right: a scope such as "user:bob" or "agent:desk".',
            ),
            Parameter(
                name="right",
                type="choice",
                required=True,
                positional=True,
                choices=("read", "write"),
                help="What they may do.",
            ),
            Parameter(
                name="until",
                type="time",
                help="When the grant ends: ISO-8601 with a time zone; by default never.",
                tool_help="When it ends.",
            ),
            *scopes,
            confirm,
        ),
        result="Grant",
        effect="change",
        question="Open {scope} to somebody else?",
        one_scope=True,
        path="/v1/grants",
        tool="memory_grant",
        toolset="graph",
        command="grants",
    )
