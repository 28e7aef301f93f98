"""Trust calls: how far a scope trusts origins, and what it holds in quarantine."""

from __future__ import annotations

from worlddb.faces.call_parts import Call, Parameter

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
