"""Mask: what in a text is not running text, blotted out so that offsets stay.

Code, addresses, headings, tables, tags and labels hold capital letters and numbers that mean
something else there. Each becomes as many `BLOT`s; nothing else changes.
"""

from __future__ import annotations

import re

from worlddb.extract.lexicon.ordinary import SMALL

BLOT = "\x00"

_SUFFIXES = "com|org|net|io|co|edu|gov|uk|de|fr|au|ca|app|dev|ai|me|tv|info|biz|us|in"
_ENDINGS = "py|js|ts|tsx|jsx|json|ya?ml|toml|md|txt|csv|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg"
_ENDINGS += "|html?|css|java|cpp|c|h|go|rs|rb|sh|sql|xml|zip|exe|mp3|mp4|log|ini|cfg|ipynb"
# What is looked for, and the signs without which it cannot be there: most texts have none of them.
_NO_TEXT = (
    (("```", "~~~"), r"(?:```|~~~).*?(?:```|~~~|\Z)"),  # fenced code, closed or not
    (("`",), r"`[^`\n]{1,200}`"),
    (("://", "www."), r"\b(?:https?|ftp|file)://\S+|\bwww\.\S+"),
    (("@",), r"(?<!\S)[^\s@]{0,100}@\S{1,200}"),  # mail addresses and handles
    (("#",), r"(?<![\w&])#\w+"),
    (("<",), r"<[^<>\n]{1,300}>"),
    (("_",), r"\b\w*[a-z0-9]_\w*|\b_\w+"),  # identifiers
    (("/", "\\"), r"(?<!\S)(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.-]+){2,}"),
    (("(",), r"(?<![\w.])\w[\w.]{0,80}\((?:[^()\n]{0,80}\)(?=[.;,)\s]|\Z))?"),  # calls
)
_DOTTED = re.compile(r"\w\.[a-z]")
_ADDRESS = re.compile(
    rf"(?<![\w.-])(?:[\w-]{{1,63}}\.)+(?:{_SUFFIXES})\b(?:/\S*)?"
    rf"|(?<![\w./\\-])[\w./\\-]{{1,200}}\.(?:{_ENDINGS})\b"
)
_PATTERNS = tuple((signs, re.compile(pattern, re.DOTALL)) for signs, pattern in _NO_TEXT)
_CODE_START = (
    r"(?:import|from\s+\w+\s+import|def|class|function|const|let|var|return|public|private|static"
    r"|SELECT|INSERT|UPDATE|DELETE|CREATE|#include|#!|//|/\*|\$|>>>|package|using|namespace)"
)
_CODE_LINE = re.compile(
    rf"^[ \t]*+(?:{_CODE_START}\b[^\n]*[(){{}};=:<>*][^\n]*"
    r"|[^\n]*(?:[;{}]|=>|::|\(\)|[!=]=)[ \t]*"
    r"|[{}\[\]][^\n]*"
    r"|\"[^\"\n]{0,100}\"[ \t]*:[^\n]*"
    r"|\w[\w.]{0,60}[ \t]*[+*/|&-]?=[^\n]*"
    r"|\|[^\n]*"
    r"|\#{1,6}[ \t][^\n]*)$",
    re.MULTILINE,
)
_CODE_SIGN = re.compile(r"[{};=|#\[\]]|::|\(\)|^[ \t]*\"", re.MULTILINE)
_LABEL = re.compile(
    r"^[ \t]*+(?:[-*•+]|\d{1,3}[.)])?[ \t]*(?:\*\*[^*\n]{1,120}\*\*:?|__[^_\n]{1,120}__:?)",
    re.MULTILINE,
)
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W\d_]+")
_HEADING_WORDS_MIN = 3


def masked(text: str) -> str:
    """Return `text` with everything that is not running text blotted out; as long as before."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        return BLOT * len(text)
    for signs, pattern in _PATTERNS:
        if any(sign in text for sign in signs):
            text = pattern.sub(_blot, text)
    if _DOTTED.search(text) is not None:
        text = _ADDRESS.sub(_blot, text)
    if _CODE_SIGN.search(text) is not None:
        text = _CODE_LINE.sub(_blot, text)
    if "**" in text or "__" in text:
        text = _LABEL.sub(_blot, text)
    return _LINE.sub(_without_headings, text)


def in_quotes(plain: str, position: int) -> bool:
    """Return whether a place is inside quotation marks: somebody else's words, of another time."""
    line = plain.rfind("\n", 0, position) + 1
    if plain.count('"', line, position) % 2:
        return True
    return plain.rfind("“", line, position) > plain.rfind("”", line, position)


def _blot(match: re.Match[str]) -> str:
    return BLOT * (match.end() - match.start())


def _without_headings(match: re.Match[str]) -> str:
    """A line in which every word is capitalised says nothing about any one of them."""
    line = match[0]
    words = 0
    for word in _WORD.finditer(line):
        if word[0] not in SMALL:
            if not word[0][0].isupper():
                return line
            words += 1
    ended = line.rstrip().endswith((".", "!", "?", ",", ";"))
    least = _HEADING_WORDS_MIN + 2 * ended
    return BLOT * len(line) if words >= least else line
