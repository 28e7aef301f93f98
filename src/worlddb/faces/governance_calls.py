"""Governance calls: the calls of Memory on retirement, retention, grants, trust and reads."""

from __future__ import annotations

from worlddb.faces.call_parts import (
    CONFIRM,
    CURSOR,
    END_AT,
    ID,
    SCOPES,
    WHERE,
    Call,
    Parameter,
    flag,
    limit,
    needed,
)

SCOPE_NAME_CHARS_MAX = 520  # The kind of a scope and a value of 512 characters.
DAYS_MAX = 36_500  # The limit of Memory.
SECRET_RULES = ("keep", "warn", "mask", "leave_out", "refuse")
RECEIPT = flag("receipt", "", in_command=False)

ENDING_CALLS: tuple[Call, ...] = (
    # Pins.
    Call(
        name="pin",
        title="Pin a memory",
        summary="Give a memory first, whatever the question",
        help="Pin a memory, so that {context} gives it first: a standing instruction or fact.",
        parameters=(ID, *SCOPES),
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
        help="Unpin a memory. {recall} still finds it, and {context} may leave it out.",
        parameters=(ID, *SCOPES),
        result="Remembered",
        effect="change",
        path="/v1/memories/{id}/unpin",
        tool="memory_unpin",
        toolset="graph",
        command="unpin",
        examples=("unpin 3f2a",),
    ),
    # Retirement and erasure.
    Call(
        name="retire",
        title="Retire a memory",
        summary="End one memory",
        help="""\
End one memory that is no longer true or no longer wanted, without a replacement.

To replace it, use {amend}.""",
        parameters=(ID, *SCOPES, END_AT),
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

Name the scope; with several ids, only memories in all of them end.""",
        parameters=(*SCOPES, WHERE._replace(tool_help="As in memory_recall."), CONFIRM, END_AT),
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
        parameters=(*SCOPES, CONFIRM),
        result="Retired",
        effect="end",
        question="End {scope} and every memory in it? They can still be read, but never come back.",
        one_scope=True,
        path="/v1/purge_scope",
        tool="memory_purge_scope",
        command="scopes",
    ),
    Call(
        name="erase",
        title="Erase for good",
        summary="Remove the text of a memory, or of a scope, for good",
        help="""\
Remove one memory, or everything in one scope, for good: text, sources and traces.

With `id`: that memory and what was derived from it. Without: the scope, which has to be confirmed.
The answer says what was erased. Nothing of it can be read again, and it cannot be undone.""",
        parameters=(
            # A model may only request a whole scope, which a person confirms.
            ID._replace(required=False, in_command=False, in_tool=False),
            *SCOPES,
            CONFIRM,
            RECEIPT._replace(help="Also return a signed receipt of what was erased."),
        ),
        result="Receipt",
        effect="end",
        question="Erase {scope} for good, with everything in it? This cannot be undone.",
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
            *SCOPES,
            CONFIRM,
        ),
        result="ScopeExport",
        effect="read",
        question="Export all memories in {scope}, with its files?",
        one_scope=True,
        method="GET",
        path="/v1/export",
        tool="memory_export",
        toolset="graph",
        command="export",
    ),
    # Retention; for administrators.
    Call(
        name="retention",
        title="List retention policies",
        summary="List how long the memories of scopes are kept",
        help=(
            "List the retention policies: how long memories are kept, what happens then, and "
            "legal holds."
        ),
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
        help="Set how long the memories of one scope are kept, and what happens then.",
        parameters=(
            Parameter(
                "keep_days",
                "whole",
                "Days after which a memory that is not pinned is due; 0 for never.",
                least=0,
                most=DAYS_MAX,
            ),
            Parameter(
                "then",
                "choice",
                "What to do with a memory that is due.",
                choices=("retire", "erase"),
            ),
            Parameter(
                "hold",
                "choice",
                "Legal hold: while it is on, nothing of the scope is erased.",
                choices=("on", "off"),
            ),
            *SCOPES,
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
        help=(
            "Retire or erase the memories that are due by the policies; with `dry_run`, only list "
            "them."
        ),
        parameters=(
            flag("dry_run", "List the memories that are due, and change nothing."),
            *SCOPES,
        ),
        result="RetentionReport",
        effect="end",
        path="/v1/apply_retention",
        command="retention",
    ),
)
"""Calls that pin memories, end or erase them, and say how long they are kept."""

TRUST_CALLS: tuple[Call, ...] = (
    # Grants: who outside a scope may read it or write into it, and what the scope refuses.
    Call(
        name="grants",
        title="List grants",
        summary="List who may read or write in whose scope",
        help=(
            "List the grants that a scope has given or received: who may read it or write into it."
        ),
        parameters=(
            *SCOPES,
            flag(
                "include_ended",
                "Also return grants that were revoked or have expired.",
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
    Call(
        name="grant",
        title="Grant a right",
        summary="Let somebody else read or write in a scope",
        help="""\
Let the callers of another scope read one scope, or write into it, until the grant is revoked.

Their memories keep their names. {revoke} ends a grant; {refuse} removes one of their memories.""",
        parameters=(
            needed(
                "to",
                "text",
                'Who gets the right: a scope such as "user:bob" or "agent:desk".',
                most=SCOPE_NAME_CHARS_MAX,
            ),
            needed("right", "choice", "What they may do.", choices=("read", "write")),
            Parameter(
                "until",
                "time",
                "When the grant ends: ISO-8601 with a time zone; by default never.",
                tool_help="When it ends.",
            ),
            *SCOPES,
            CONFIRM,
        ),
        result="Grant",
        effect="change",
        question="Grant others access to {scope}?",
        one_scope=True,
        path="/v1/grants",
        tool="memory_grant",
        toolset="graph",
        command="grants",
    ),
    Call(
        name="revoke",
        title="Revoke a grant",
        summary="End a grant",
        help=(
            "End a grant, or a refusal, by its id; {grants} lists them. It stays in the list of "
            "ended grants."
        ),
        parameters=(ID, *SCOPES),
        result="Grant",
        effect="change",
        path="/v1/grants/{id}/revoke",
        tool="memory_revoke",
        toolset="graph",
        command="grants",
    ),
    Call(
        name="refuse",
        title="Refuse memories of others",
        summary="Take what somebody else wrote into a scope out of it",
        help="""\
Remove a memory of another writer from a scope, and end that writer's grants to write there.

The memory stays in the writer's own scope.""",
        parameters=(ID, *SCOPES),
        result="Retired",
        effect="change",
        path="/v1/memories/{id}/refuse",
        tool="memory_refuse",
        toolset="graph",
        command="grants",
    ),
    # Trust in origins, and quarantine: decided by people, not by a model.
    Call(
        name="trust",
        title="Show the trust of a scope",
        summary="Show how far a scope trusts each origin",
        help="Show how far a scope trusts each origin, and what it does with secrets.",
        parameters=SCOPES,
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
                "trust",
                "object",
                'Trust by origin, such as {"web": "quarantine"}: full, limited, low or quarantine.',
                positional=True,
            ),
            Parameter(
                "secrets",
                "choice",
                "What to do with keys, tokens, passwords and card numbers in texts.",
                choices=SECRET_RULES,
            ),
            flag("everywhere", "For all scopes without trust settings of their own."),
            *SCOPES,
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
    Call(
        name="quarantine",
        title="List the quarantine",
        summary="List what was written and waits for a decision",
        help=(
            "List the memories in quarantine, which are not recalled until somebody releases them."
        ),
        parameters=(*SCOPES, limit(50, 20), CURSOR),
        result="MemoryPage",
        effect="read",
        method="GET",
        path="/v1/quarantine",
        command="quarantine",
        examples=("quarantine --user-id ada",),
        empty="the quarantine is empty",
    ),
    Call(
        name="decide_quarantined",
        title="Decide on a memory in quarantine",
        summary="Release or reject what is in quarantine",
        help=(
            "Release a memory from quarantine, so that it is recalled, or reject it. Wait undoes "
            "a rejection."
        ),
        parameters=(
            ID,
            needed(
                "decision",
                "choice",
                "Release it, reject it, or undo a rejection.",
                choices=("release", "reject", "wait"),
            ),
            *SCOPES,
        ),
        result="Remembered",
        effect="change",
        path="/v1/quarantine/{id}/decide",
        command="decide",
        examples=("decide 3f2a release", "decide 3f2a reject"),
    ),
    # Fading memories, the extraction queue, and the record of reads.
    Call(
        name="fading",
        title="List memories that fade",
        summary="List memories that have faded",
        help=(
            "List fading memories, those with the lowest retention first: old, seldom recalled, "
            "hardly linked."
        ),
        parameters=(
            Parameter(
                "below", "share", "Only memories with a lower retention; from 0 to 1.", default=0.25
            ),
            limit(50, 20),
            *SCOPES,
        ),
        result="FadingPage",
        effect="search",
        method="GET",
        path="/v1/fading",
        command="fading",
    ),
    Call(
        name="pending",
        title="List pending extractions",
        summary="List what is written and not read yet",
        help=(
            "List memories whose extraction is pending, because the text is long or a model failed."
        ),
        parameters=(limit(50, 20), *SCOPES),
        result="PendingPage",
        effect="read",
        method="GET",
        path="/v1/pending",
        command="extract",
    ),
    Call(
        name="reads",
        title="List reads",
        summary="List who recalled what",
        help=(
            "List the recorded reads, the latest first: who asked what, when, and which memories "
            "were found."
        ),
        parameters=(*SCOPES, limit(100, 100)),
        result="ReadPage",
        effect="read",
        method="GET",
        path="/v1/reads",
        command="reads",
        examples=("reads --user-id ada", "reads --limit 1000 --json"),
        empty="no reads are recorded",
    ),
)
"""Calls on grants, on trust and quarantine, and on what waits for a decision."""
