"""Visible text: stored texts as they are shown to people and models.

Whoever wrote a text may have put characters into it that move the cursor (ANSI), turn the direction
of what follows (bidi), or are not shown at all. Where a text is shown, they are escapes. What is
stored, and what programs get as data, stays as it was written.
"""

from __future__ import annotations

import json
import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tab and line feed, direction marks, and what has no width and no glyph."""


def visible(text: str) -> str:
    r"""Return a text with hidden characters as escapes such as \u202e."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def visible_json(document: str) -> str:
    """Return a JSON document with hidden characters as JSON escapes; it says the same."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], document)
