"""Retention calls: how long the memories of a scope are kept; for administrators."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

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
