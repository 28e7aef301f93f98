"""Secrets in a text: keys, tokens, passwords, private keys and card numbers, found by their form.

    "use sk-ant-api03-Ab…"  ──without_secrets()──▶  "use [secret: api key]"

A pattern names the form that an issuer documents, or the word that stands before a value
("password=…"). A value of no known form and without such a word is not found: this keeps accidents
out of a memory and is no promise. Loaded by every hook, so it imports next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

VALUE_CHARS_MIN = 8  # A shorter value after "password:" is more often a word than a password.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
CARD_DIGITS = range(13, 20)  # ISO/IEC 7812 allows up to 19; no issuer has fewer than 13.


class Secret(NamedTuple):
    """One secret in a text: what it is, and where."""

    kind: str
    start: int
    end: int


_ISSUED = "|".join(
    (
        r"sk-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, OpenRouter and who copies them
        r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
        r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
        r"gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}",  # GitLab
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
        r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
        r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}",  # Google
        r"hf_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}",
        r"npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|dop_v1_[a-f0-9]{64}",
        r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    )
)
_NAMED = (
    r"(?:api|access|secret|auth|private|client|encryption|signing)[ _-]?(?:key|token|secret)"
    r"|password|passwd|passphrase|pwd|secret|token|credentials?"
)
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
    ),
    ("api key", re.compile(rf"(?<![A-Za-z0-9])(?:{_ISSUED})")),
    ("token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("token", re.compile(r"(?i)(?<=\bbearer )(?=\S*\d)[A-Za-z0-9._~+/=-]{16,}")),
    ("password", re.compile(r"(?<=://)[^\s/:@]+:([^\s/@]+)(?=@)")),
    (
        "password",
        re.compile(
            # A word that names a secret, perhaps inside a longer name (DB_PASSWORD), then its value
            # in quotes, or bare with at least one digit or sign: prose has neither.
            rf"(?i)(?<![a-z0-9])(?:[a-z0-9]{{1,40}}[_-]){{0,4}}(?:{_NAMED})[\"']?\s*(?:=|:|\bis\b)\s*"
            rf"(?:\"([^\"\s]{{{VALUE_CHARS_MIN},}})\"|'([^'\s]{{{VALUE_CHARS_MIN},}})'"
            rf"|(?=[^\s\"',;]*[0-9!#%^&*+])([^\s\"',;]{{{VALUE_CHARS_MIN},}}))"
        ),
    ),
)
_DIGITS = re.compile(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w])")


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets in a text by their place; none lies inside another."""
    found = [
        _secret(kind, match) for kind, pattern in _PATTERNS for match in pattern.finditer(text)
    ]
    found += [
        Secret("card number", match.start(), match.end())
        for match in _DIGITS.finditer(text)
        if _is_card(re.sub("[ -]", "", match[0]))
    ]
    kept: list[Secret] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def without_secrets(text: str) -> str:
    """Return a text with the kind of each secret in its place."""
    parts, end = [], 0
    for one in secrets_in(text):
        parts += [text[end : one.start], f"[secret: {one.kind}]"]
        end = one.end
    return "".join([*parts, text[end:]]) if parts else text


def without_sentences(text: str) -> str:
    """Return a text without the sentences that have a secret; of a private key, all its lines."""
    found = secrets_in(text)
    ends = [
        gap.end()
        for gap in SENTENCE_END.finditer(text)
        # A private key has lines, and a password may end as a sentence does.
        if not any(one.start < gap.start() < one.end for one in found)
        and (gap[0][0] == "\n" or all(gap.start() != one.end for one in found))
    ]
    kept = (
        text[start:end]
        for start, end in pairwise([0, *ends, len(text)])
        if not any(one.start < end and one.end > start for one in found)
    )
    return "".join(kept).strip()


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts in a value; one under a key with the key before it: "password=…"."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (f"{key}={inner}",) if isinstance(inner, str) else (str(key),)
            yield from () if isinstance(inner, str) else texts_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_of(inner)


def without_secret_values(value: Any, *, leave_out: bool = False) -> Any:
    """Return a value without the secrets in its texts: masked, or left out; None for all of it."""
    found = _without(value, leave_out, "")
    return None if found is _LEFT_OUT else found


_LEFT_OUT = object()


def _without(value: Any, leave_out: bool, before: str) -> Any:
    if isinstance(value, str):
        masked = without_secrets(f"{before}{value}")
        if masked == f"{before}{value}":
            return value
        return _LEFT_OUT if leave_out else masked.removeprefix(before)
    if isinstance(value, Mapping):
        inner = {
            without_secrets(str(name)): _without(one, leave_out, f"{name}=")
            for name, one in value.items()
        }
        return {name: one for name, one in inner.items() if one is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        inner_values = [_without(one, leave_out, "") for one in value]
        kept = [one for one in inner_values if one is not _LEFT_OUT]
        return _LEFT_OUT if inner_values and not kept else type(value)(kept)
    return value


def _secret(kind: str, match: re.Match[str]) -> Secret:
    group = match.lastindex or 0
    return Secret(kind, match.start(group), match.end(group))


def _is_card(digits: str) -> bool:
    """Return whether digits are a card number: a known first digit and a right check digit."""
    if len(digits) not in CARD_DIGITS or digits[0] not in "23456" or len(set(digits)) == 1:
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0
