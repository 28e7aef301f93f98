"""Passages: a document cut at headings, paragraphs and pages.

P1  The text of a passage is the document's text from `start` to `end`, to the letter.
P2  No passage is longer than `CHARS_MAX`, none spans two headings or two pages.
P3  Where paragraphs are put together depends on what they say, not on where they stand: a change
    moves the cuts beside it and no others, so most passages of a changed document are as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from blake3 import blake3

from worlddb.ingest.document_text import DocumentText

CHARS_MAX = 1_600  # About 400 tokens: small embedders read no more at once.
CHARS_MIN = 400  # Shorter paragraphs are put together: alone they say too little.
CUT_ONE_IN = 4  # Of the paragraphs after which a passage may end, so many go on.
TITLE_CHARS_MAX = 120  # Six levels of this fit into the name of a node, in any alphabet.
PATH_MARK = " > "
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SPACE = re.compile(r"\s*")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"')\]”’»]*\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a document and its place: headings above it, characters, page."""

    text: str
    headings: tuple[str, ...]
    start: int
    end: int
    page: int | None = None

    @property
    def path(self) -> str:
        """The headings above it, as the name of a node."""
        return PATH_MARK.join(self.headings)


class _Block(NamedTuple):
    """A heading of a level, or a paragraph (level 0), from `start` to `end`."""

    level: int
    title: str
    start: int
    end: int
    page: int


def passages_of(document: DocumentText) -> list[Passage]:
    """Return the passages of a document, in order."""
    text, found = document.text, []
    pages = "\f" in text
    above: list[tuple[int, str]] = []
    held: list[_Block] = []
    lone: _Block | None = None  # A heading that nothing has followed yet.

    def close() -> None:
        if held:
            start, end = held[0].start, held[-1].end
            place = tuple(title for _, title in above)
            page = held[0].page if pages else None
            found.append(
                Passage(text=text[start:end], headings=place, start=start, end=end, page=page)
            )
            held.clear()

    for block in _blocks(text, document.is_markdown):
        if block.level:
            close()
            if lone is not None and block.level <= lone.level:
                held.append(lone)  # Nothing stands below it: it says what it says itself.
                close()
            above = [one for one in above if one[0] < block.level]
            above.append((block.level, block.title[:TITLE_CHARS_MAX]))
            lone = block
            continue
        lone = None
        for part in _parts(text, block):
            if held and (part.end - held[0].start > CHARS_MAX or part.page != held[0].page):
                close()
            held.append(part)
            if part.end - held[0].start >= CHARS_MIN and _cuts(text[part.start : part.end]):
                close()
    close()
    if lone is not None:
        held.append(lone)
        close()
    return found


def title_of_document(document: DocumentText) -> str:
    """Return what a document calls itself: its title, or its first heading."""
    if document.title or not document.is_markdown:
        return document.title
    blocks = _blocks(document.text, True)
    return next((block.title[:TITLE_CHARS_MAX] for block in blocks if block.level), "")


def _blocks(text: str, markdown: bool) -> Iterator[_Block]:
    """Yield the headings and paragraphs of a text."""
    place, page, begin, lines, fence = 0, 1, -1, 0, ""
    end = 0
    front = re.match(r"---\n.*?\n---[ \t]*(?:\n|\Z)", text, re.DOTALL) if markdown else None
    if front is not None:  # What some tools keep before the text; its lines are no headings.
        yield from _paragraph(text, 0, front.end(), page)
        place = front.end()
    for line in text[place:].splitlines(keepends=True):
        start, place = place, place + len(line)
        bare = line.rstrip("\n\r\f\v\x1c\x1d\x1e\x85\u2028\u2029")
        opened = _FENCE.match(bare) if markdown else None
        if fence:
            closes = (
                opened is not None and bare.strip() == opened[1] and opened[1].startswith(fence)
            )
            fence = "" if closes else fence
            begin = start if begin < 0 else begin
            end = start + len(bare)
        elif markdown and (atx := _ATX.fullmatch(bare)) and atx[2]:
            yield from _paragraph(text, begin, end, page)
            begin = -1
            at = start + bare.index(atx[2])
            yield _Block(len(atx[1]), atx[2], at, at + len(atx[2]), page)
        elif markdown and lines == 1 and begin >= 0 and _SETEXT.fullmatch(bare):
            title = text[begin:end].strip()
            yield _Block(1 if "=" in bare else 2, title, begin, end, page)
            begin = -1
        elif not bare.strip():
            yield from _paragraph(text, begin, end, page)
            begin = -1
        else:
            if begin < 0:
                begin, lines = start, 0
            lines, end = lines + 1, start + len(bare)
            fence = opened[1] if opened else ""
        if line.endswith("\f"):
            yield from _paragraph(text, begin, end, page)
            begin, page = -1, page + 1
    yield from _paragraph(text, begin, end, page)


def _paragraph(text: str, start: int, end: int, page: int) -> Iterator[_Block]:
    """Yield a paragraph without the white space around it, if it has a letter or a digit."""
    said = text[start:end] if start >= 0 else ""
    if any(sign.isalnum() for sign in said):
        start += len(said) - len(said.lstrip("\n \t"))
        yield _Block(0, "", start, start + len(said.strip("\n \t")), page)


def _parts(text: str, block: _Block) -> Iterator[_Block]:
    """Yield a paragraph, or parts of a long one: cut after sentences, else between words."""
    start = block.start
    while block.end - start > CHARS_MAX:
        window = text[start : start + CHARS_MAX]
        ends = [found.end() for found in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else window.rfind(" ") + 1 or CHARS_MAX
        end = start + len(window[:cut].rstrip())
        yield block._replace(start=start, end=end)
        space = _SPACE.match(text, start + cut, block.end)
        start = block.end if space is None else space.end()
    if start < block.end:
        yield block._replace(start=start)


def _cuts(paragraph: str) -> bool:
    """Return whether a passage may end after a paragraph."""
    return blake3(paragraph.encode("utf-8", "replace")).digest(1)[0] % CUT_ONE_IN == 0
