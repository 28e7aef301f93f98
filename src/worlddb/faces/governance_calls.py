"""Governance calls: how memories end, who may see them, whom a scope trusts, what it keeps."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

# Grant calls: who outside a scope may read it or write into it, and what is refused.

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


# Trust calls: how far a scope trusts origins, and what it holds in quarantine.

RULES = ("keep", "warn", "mask", "leave_out", "refuse")


def trust_calls(
    ident: Parameter, scopes: tuple[Parameter, ...], limit: Parameter, cursor: Parameter
) -> tuple[Call, ...]:
    """Return the calls; every one takes scopes. A model decides none of this."""
    return (*_settings_calls(scopes), *_quarantine_calls(ident, scopes, limit, cursor))


def _settings_calls(scopes: tuple[Parameter, ...]) -> tuple[Call, ...]:
    return (
        Call(
            name="trust",
            title="Show the trust of a scope",
            summary="Show how far a scope trusts each origin",
            help="Show how far a scope trusts each origin, and what it does with secrets.",
            parameters=scopes,
            result="TrustSettings",
            effect="read",
            method="GET",
            path="/v1/trust",
            command="trust",
            examples=("trust --user-id ada",),
        ),
        Call(
            name="set_trust",
            title="Set the trust of a scope",
            summary="Say how far a scope trusts each origin",
            help="Change how far a scope trusts origins, and what it does with secrets in texts.",
            parameters=(
                Parameter(
                    name="trust",
                    type="object",
                    positional=True,
                    help='Trust by origin, such as {"web": "quarantine"}: full, limited, low or '
                    "quarantine.",
                ),
                Parameter(
                    name="secrets",
                    type="choice",
                    choices=RULES,
                    help="What becomes of keys, tokens, passwords and card numbers in texts.",
                ),
                Parameter(
                    name="everywhere",
                    type="flag",
                    default=False,
                    help="For all scopes that say nothing else.",
                ),
                *scopes,
            ),
            result="TrustSettings",
            effect="change",
            path="/v1/trust",
            command="set-trust",
            examples=(
                'set-trust \'{"web": "quarantine"}\' --user-id ada',
                "set-trust --secrets mask --everywhere",
            ),
        ),
    )


def _quarantine_calls(
    ident: Parameter, scopes: tuple[Parameter, ...], limit: Parameter, cursor: Parameter
) -> tuple[Call, ...]:
    return (
        Call(
            name="quarantine",
            title="List what is in quarantine",
            summary="List what was written and waits for a decision",
            help="List what was written and is not recalled until somebody releases it.",
            parameters=(*scopes, limit, cursor),
            result="MemoryPage",
            effect="read",
            method="GET",
            path="/v1/quarantine",
            command="quarantine",
            examples=("quarantine --user-id ada",),
        ),
        Call(
            name="decide_quarantined",
            title="Decide on what is in quarantine",
            summary="Release or reject what is in quarantine",
            help="Release a text from quarantine, so that it is recalled, or reject it. Wait takes "
            "a rejection back.",
            parameters=(
                ident,
                Parameter(
                    name="decision",
                    type="choice",
                    required=True,
                    positional=True,
                    choices=("release", "reject", "wait"),
                    help="Release it, reject it, or let what was rejected wait again.",
                ),
                *scopes,
            ),
            result="Remembered",
            effect="change",
            path="/v1/quarantine/{id}/decide",
            command="decide",
            examples=("decide 3f2a release", "decide 3f2a reject"),
        ),
    )


# Retention calls: how long the memories of a scope are kept; for administrators.

DAYS_MAX = 36_500  # As many as Memory takes.


def waiting_calls(scopes: tuple[Parameter, ...], limit: Parameter) -> tuple[Call, ...]:
    """Return the calls that tell what fades and what waits to be read; for an inbox."""
    return (
        Call(
            name="fading",
            title="List memories that fade",
            summary="List memories that have faded",
            help="List memories that fade, the worst first: old, seldom recalled, hardly linked.",
            parameters=(
                Parameter(
                    name="below",
                    type="share",
                    default=0.25,
                    help="Only a retention below this; from 0 to 1.",
                ),
                limit,
                *scopes,
            ),
            result="FadingPage",
            effect="search",
            method="GET",
            path="/v1/fading",
            command="fading",
        ),
        Call(
            name="pending",
            title="List memories that wait to be read",
            summary="List what is written and not read yet",
            help="List memories that are written and not read yet: too long, or a model failed.",
            parameters=(limit, *scopes),
            result="PendingPage",
            effect="read",
            method="GET",
            path="/v1/pending",
            command="extract",
        ),
    )


def read_audit_call(scopes: tuple[Parameter, ...], limit: Parameter) -> Call:
    """Return the call that tells who recalled what."""
    return Call(
        name="reads",
        title="List reads",
        summary="List who recalled what",
        help="List who recalled what, when, and which memories were the answer, the latest first.",
        parameters=(*scopes, limit),
        result="ReadPage",
        effect="read",
        method="GET",
        path="/v1/reads",
        command="reads",
        examples=("reads --user-id ada", "reads --limit 1000 --json"),
    )


def retention_calls(scopes: tuple[Parameter, ...]) -> tuple[Call, ...]:
    """Return the calls; those that change something name scopes."""
    return (
        Call(
            name="retention",
            title="List retention policies",
            summary="List how long the memories of scopes are kept",
            help="List the retention policies: how long memories are kept, what then, holds.",
            parameters=(),
            result="RetentionPolicies",
            effect="read",
            method="GET",
            path="/v1/retention",
            command="retention",
        ),
        Call(
            name="set_retention",
            title="Set a retention policy",
            summary="Say how long the memories of a scope are kept",
            help="Change how long the memories that live in one scope are kept, and what then.",
            parameters=(
                Parameter(
                    name="keep_days",
                    type="whole",
                    least=0,
                    most=DAYS_MAX,
                    help="Days after which a memory that is not pinned is due; 0 for never.",
                ),
                Parameter(
                    name="then",
                    type="choice",
                    choices=("retire", "erase"),
                    help="What is done with a memory that is due.",
                ),
                Parameter(
                    name="hold",
                    type="choice",
                    choices=("on", "off"),
                    help="Legal hold: while it is on, nothing of the scope is erased.",
                ),
                *scopes,
            ),
            result="RetentionPolicy",
            effect="change",
            path="/v1/retention",
            command="retention",
        ),
        Call(
            name="apply_retention",
            title="Apply the retention policies",
            summary="Retire or erase what is due",
            help="Retire or erase what is due by the policies; with `dry_run`, only say what is.",
            parameters=(
                Parameter(
                    name="dry_run",
                    type="flag",
                    default=False,
                    help="Say what is due, and change nothing.",
                ),
                *scopes,
            ),
            result="RetentionReport",
            effect="end",
            path="/v1/apply_retention",
            command="retention",
        ),
    )


# Pin calls: the calls that pin a memory and take its pin away.


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


# Retirement calls: the calls that end memories, and the one that erases them.

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
