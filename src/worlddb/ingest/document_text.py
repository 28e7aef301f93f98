"""Document text: a file or a text of a known media type as plain text, cut into passages.

    path, or named text ──document_of──▶ DocumentText(name, text, …) ──passages_of──▶ [Passage]

HTML and DOCX become Markdown, so that headings are kept; the pages of a PDF become plain text with
a form feed between them. The libraries for PDF and DOCX are an extra, imported when needed.

P1  The text of a passage is exactly the document's text from `start` to `end`.
P2  No passage is longer than `PASSAGE_CHARS_MAX`, and none spans two headings or two pages.
P3  Paragraphs are joined by their text, not by their position. A change moves only the cuts next to
    it, so most passages of a changed document stay the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from typing import Any, NamedTuple

from blake3 import blake3

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Plain

MARKDOWN, PLAIN, HTML = "text/markdown", "text/plain", "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), MARKDOWN),
    **dict.fromkeys((".txt", ".text", ".rst", ".log"), PLAIN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
    ".pdf": PDF,
    ".docx": DOCX,
}
"""The media types of files by file extension."""
CHARS_MAX = 1 << 22  # a book of two thousand pages; more would make one commit too large
PATH_CHARS_MAX = 1_024  # a longer text is not a path
NAME_CHARS_MAX = 500  # a name is shown in lists
FIRST_LINE_CHARS = 80  # part of the first line that names a text without name and heading
_HEADING = re.compile(r"(?m)^( {0,3})(#{1,6}[ \t])")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentText(Plain):
    """A document: its name, its text as Markdown or plain text, and its original media type.

    The name identifies the document: the same name with another text is a new version.
    """

    name: str
    text: str
    media_type: str = MARKDOWN
    is_markdown: bool = True
    title: str = ""

    def as_given(self) -> dict[str, str]:
        """Return the document as a client sends it to a server."""
        form = MARKDOWN if self.is_markdown else PLAIN
        return {"name": self.name, "text": self.text, "media_type": form}


DocumentInput = str | os.PathLike[str] | Mapping[str, str] | DocumentText


def document_of(given: DocumentInput) -> DocumentText:
    """Return a document from a path, a text, or a mapping with `text`, `name` and `media_type`.

    A text without line breaks that is the path of a file stands for that file. A mapping never
    does, because it comes from remote callers, who may not read the files of this machine.
    """
    if isinstance(given, DocumentText):
        made = given
    elif isinstance(given, Mapping):
        made = _of_mapping(given)
    elif isinstance(given, os.PathLike) or (isinstance(given, str) and _is_path(given)):
        made = read_document(os.fspath(given))
    elif isinstance(given, str):
        made = text_document(given)
    else:
        raise InvalidInputError(f"document: give a path or a text, not {type(given).__name__}")
    if len(made.text) > CHARS_MAX:
        raise InvalidInputError(
            f"document {made.name:.80}: has {len(made.text):,} characters; the limit is "
            f"{CHARS_MAX:,}; cut it into several documents"
        )
    if not made.text.strip():
        raise InvalidInputError(f"document {made.name:.80}: has no text")
    return made


def read_document(path: str, name: str | None = None) -> DocumentText:
    """Return the document in a file; its name is the path unless another one is given."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise InvalidInputError(f"document {path}: {error.strerror}") from None
    name = os.path.normpath(path).replace(os.sep, "/") if name is None else name
    media_type = MEDIA_TYPES.get(os.path.splitext(path)[1].lower(), PLAIN)
    if media_type in (PDF, DOCX):
        text = (_pdf_text if media_type == PDF else _docx_text)(data, name)
        return DocumentText(
            name=name, text=text, media_type=media_type, is_markdown=media_type == DOCX
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError(f"document {path}: is not UTF-8 text; convert it") from None
    return text_document(text, name, media_type)


def text_document(text: str, name: str = "", media_type: str = "") -> DocumentText:
    """Return a document from Markdown, plain text or HTML."""
    kind = media_type.partition(";")[0].strip().lower()
    kind = kind or MEDIA_TYPES.get(os.path.splitext(name)[1].lower(), MARKDOWN)
    if kind not in (MARKDOWN, PLAIN, HTML):
        raise InvalidInputError(
            f"media_type {kind!r:.80}: give {MARKDOWN}, {PLAIN} or {HTML}; files of other types "
            "are read by the Python call and the command line"
        )
    text = text.replace("\r\n", "\n").replace("\0", "")
    title = ""
    if kind == HTML:
        reader = HtmlReader()
        reader.read(text)
        text, title = reader.markdown(), reader.title()
    found = re.search(r"(?m)^ {0,3}#{1,6}[ \t]+(\S.*)$", text) if kind != PLAIN else None
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    name = " ".join((name or title or (found[1] if found else first)[:FIRST_LINE_CHARS]).split())
    if len(name) > NAME_CHARS_MAX:
        raise InvalidInputError(f"name: has {len(name)} characters; at most {NAME_CHARS_MAX}")
    return DocumentText(
        name=name, text=text, media_type=kind, is_markdown=kind != PLAIN, title=title
    )


def _of_mapping(given: Mapping[str, Any]) -> DocumentText:
    strange = given.keys() - {"text", "name", "media_type"}
    values = [given.get(key) or "" for key in ("text", "name", "media_type")]
    if strange or not all(isinstance(value, str) for value in values):
        raise InvalidInputError("document: give text, name and media_type, each a text")
    return text_document(*values)


def _is_path(text: str) -> bool:
    """Return whether a text is the path of a file."""
    if len(text) > PATH_CHARS_MAX or not text.isprintable():
        return False
    if os.path.isfile(text):
        return True
    if os.path.splitext(text)[1].lower() in MEDIA_TYPES and not re.search(r"\s", text):
        raise InvalidInputError(f"document {text}: there is no such file")
    return False


def _library(name: str, path: str) -> Any:
    """Return a library of the extra."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise InvalidInputError(
            f"document {path}: to read it, install the extra: pip install 'worlddb[documents]'"
        ) from None


def _pdf_text(data: bytes, name: str) -> str:
    import logging

    pypdf = _library("pypdf", name)
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # What it mends by itself is no news.
    try:
        pages = pypdf.PdfReader(BytesIO(data)).pages
        text = "\f".join(page.extract_text().replace("\f", "\n") for page in pages)
    except Exception as error:  # A damaged file fails in many ways inside the library.
        raise InvalidInputError(f"document {name}: cannot be read as PDF: {error}") from None
    return text.replace("\0", "")


def _docx_text(data: bytes, name: str) -> str:
    docx = _library("docx", name)
    try:
        parts = [_docx_part(part) for part in docx.Document(BytesIO(data)).iter_inner_content()]
    except Exception as error:  # A damaged file fails in many ways inside the library.
        raise InvalidInputError(f"document {name}: cannot be read as DOCX: {error}") from None
    return "\n\n".join(part for part in parts if part.strip()).replace("\0", "")


def _docx_part(part: Any) -> str:
    """Return a paragraph or a table as Markdown."""
    if hasattr(part, "rows"):
        rows = ([cell.text.strip() for cell in row.cells] for row in part.rows)
        return "\n".join(" | ".join(row) for row in rows)
    style = (part.style.name if part.style is not None else "") or ""
    level = re.fullmatch(r"(?i)heading ([1-6])", style)
    text = " ".join(part.text.split()) if level or style == "Title" else part.text
    if level or style == "Title":
        return f"{'#' * (int(level[1]) if level else 1)} {text}" if text else ""
    return ("- " if style.startswith("List") else "") + escaped(text)


def escaped(text: str) -> str:
    """Return a text in which no line is a Markdown heading."""
    return _HEADING.sub(r"\1\\\2", text)


HEADINGS = frozenset(f"h{level}" for level in range(1, 7))
SKIPPED = frozenset(("script", "style", "template", "svg", "noscript", "nav"))
CELLS = frozenset(("td", "th"))
BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html"),
        *("li", "main", "ol", "p", "pre", "section", "summary", "table", "tr", "ul"),
    )
)


VERBATIM = frozenset(("script", "style"))  # only their own end tag is markup inside
_TAG = re.compile(r"</?([A-Za-z][^\s/>]*)")
_QUOTE_OR_END = re.compile("[\"'>]")
_HUGE_NUMBER = re.compile(r"&#[xX]?[0-9a-fA-F]{9,};?")  # not a character, and `int` refuses it


class HtmlReader:
    """Reads HTML as Markdown: headings, paragraphs, lists and tables; no scripts, no menus.

    The time is linear in the text even if no tag is ever closed, unlike that of the parser in
    Python's library. So each search that fails is the last one of its kind.
    """

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._blocks: list[str] = []
        self._words: list[str] = []
        self._skipped = 0
        self._level = 0
        self._mark = ""
        self._within: str | None = None  # "title" or "pre"

    def read(self, text: str) -> None:
        """Read a whole page."""
        at, last_end, quotes_hold = 0, text.rfind(">"), True
        while at < len(text):
            start = text.find("<", at)
            start = len(text) if start < 0 else start
            self._take(text[at:start])
            if start > last_end:
                self._take(text[start:])
                return
            tag = _TAG.match(text, start)
            if tag is None and text[start + 1 : start + 2] not in ("!", "?", "/"):
                self._take("<")
                at = start + 1
            elif tag is None:
                at = _after_remark(text, start)
            else:
                end = _tag_end(text, tag.end()) if quotes_hold else -1
                if end < 0:
                    quotes_hold, end = False, text.find(">", tag.end())
                at = self._tag(text, tag, end + 1)

    def _tag(self, text: str, tag: re.Match[str], end: int) -> int:
        """Begin or end an element; return the position after it."""
        name = tag[1].lower()
        if tag[0].startswith("</"):
            self._end(name)
            return end
        self._begin(name)
        if text[end - 2] == "/" and name in SKIPPED:
            self._end(name)  # <svg/>
        elif name in VERBATIM:
            closing = re.compile(f"(?i)</{name}").search(text, end)
            return closing.start() if closing else len(text)
        return end

    def _take(self, raw: str) -> None:
        if raw:
            self._add(unescape(_HUGE_NUMBER.sub("\ufffd", raw)))

    def title(self) -> str:
        """Return the title of the page."""
        return " ".join("".join(self._titles).split())

    def markdown(self) -> str:
        """Return the page as Markdown."""
        self._end_block()
        return "\n\n".join(self._blocks)

    def _begin(self, tag: str) -> None:
        if tag in SKIPPED:
            self._skipped += 1
        elif tag in HEADINGS or tag in BLOCKS:
            self._end_block()
            self._level = int(tag[1]) if tag in HEADINGS else 0
            self._mark = "- " if tag == "li" else ""
        elif tag == "br":
            self._words.append("\n")
        elif tag in CELLS and self._words:
            self._words.append(" | ")
        if tag in ("title", "pre"):
            self._within = tag

    def _end(self, tag: str) -> None:
        if tag in SKIPPED:
            self._skipped = max(0, self._skipped - 1)
        elif tag in HEADINGS or tag in BLOCKS:
            self._end_block()
        if tag == self._within:
            self._within = None

    def _add(self, data: str) -> None:
        if self._within == "title" and not self._skipped:
            self._titles.append(data)
        elif not self._skipped:
            self._words.append(data if self._within == "pre" else re.sub(r"\s+", " ", data))

    def _end_block(self) -> None:
        text = "".join(self._words)
        if self._within != "pre":
            text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        text = text.strip("\n").rstrip()
        if text.strip():
            heading = f"{'#' * self._level} {' '.join(text.split())}"
            self._blocks.append(heading if self._level else self._mark + escaped(text))
        self._words, self._level, self._mark = [], 0, ""


def _after_remark(text: str, start: int) -> int:
    """Return the position after a comment or a declaration; the end if it is never closed."""
    if text.startswith("<!--", start):
        end = text.find("-->", start + 2)  # `<!-->` is a complete comment.
        return end + 3 if end >= 0 else len(text)
    closing = "]]>" if text.startswith("<![CDATA[", start) else ">"
    end = text.find(closing, start + 2)
    return end + len(closing) if end >= 0 else len(text)


def _tag_end(text: str, at: int) -> int:
    """Return the end of the tag whose name ends at `at`; -1 if a quote in it is never closed."""
    while found := _QUOTE_OR_END.search(text, at):
        if found[0] == ">":
            return found.start()
        at = text.find(found[0], found.end()) + 1
        if not at:
            return -1
    return -1


PASSAGE_CHARS_MAX = 1_600  # about 400 tokens: small embedders read no more at once
CHARS_MIN = 400  # shorter paragraphs are joined: alone they say too little
CUT_ONE_IN = 4  # one in so many paragraphs ends a passage that may end
TITLE_CHARS_MAX = 120  # six levels fit into the name of a node, in any alphabet
PATH_MARK = " > "
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SPACE = re.compile(r"\s*")
_SENTENCE_END = re.compile(r"[.!?…。！？][\"')\]”’»]*\s+|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a document and its place: headings, position, page."""

    text: str
    headings: tuple[str, ...]
    start: int
    end: int
    page: int | None = None

    @property
    def path(self) -> str:
        """The headings above the passage, as the name of a node."""
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
    lone: _Block | None = None  # A heading without text so far.

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
                held.append(lone)  # A heading without text is text itself.
                close()
            above = [one for one in above if one[0] < block.level]
            above.append((block.level, block.title[:TITLE_CHARS_MAX]))
            lone = block
            continue
        lone = None
        for part in _parts(text, block):
            if held and (part.end - held[0].start > PASSAGE_CHARS_MAX or part.page != held[0].page):
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
    """Return the title of a document, or its first heading."""
    if document.title or not document.is_markdown:
        return document.title
    blocks = _blocks(document.text, True)
    return next((block.title[:TITLE_CHARS_MAX] for block in blocks if block.level), "")


def _blocks(text: str, markdown: bool) -> Iterator[_Block]:
    """Yield the headings and paragraphs of a text."""
    place, page, begin, lines, fence = 0, 1, -1, 0, ""
    end = 0
    front = re.match(r"---\n.*?\n---[ \t]*(?:\n|\Z)", text, re.DOTALL) if markdown else None
    if front is not None:  # Front matter of some tools; its lines are not headings.
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
        elif markdown and (atx := _ATX.match(bare)) and (title := _atx_title(bare[atx.end() :])):
            yield from _paragraph(text, begin, end, page)
            begin = -1
            at = start + bare.index(title, atx.end())
            yield _Block(len(atx[1]), title, at, at + len(title), page)
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


def _atx_title(rest: str) -> str:
    """Return the title in a heading line, without closing `#` signs."""
    title = rest.strip(" \t")
    bare = title.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) else title


def _paragraph(text: str, start: int, end: int, page: int) -> Iterator[_Block]:
    """Yield a paragraph without the white space around it, if it has a letter or a digit."""
    said = text[start:end] if start >= 0 else ""
    if any(sign.isalnum() for sign in said):
        start += len(said) - len(said.lstrip("\n \t"))
        yield _Block(0, "", start, start + len(said.strip("\n \t")), page)


def _parts(text: str, block: _Block) -> Iterator[_Block]:
    """Yield a paragraph, or parts of a long one: cut after sentences, else between words."""
    start = block.start
    while block.end - start > PASSAGE_CHARS_MAX:
        window = text[start : start + PASSAGE_CHARS_MAX]
        ends = [found.end() for found in _SENTENCE_END.finditer(window)]
        cut = ends[-1] if ends else window.rfind(" ") + 1 or PASSAGE_CHARS_MAX
        end = start + len(window[:cut].rstrip())
        yield block._replace(start=start, end=end)
        space = _SPACE.match(text, start + cut, block.end)
        start = block.end if space is None else space.end()
    if start < block.end:
        yield block._replace(start=start)


def _cuts(paragraph: str) -> bool:
    """Return whether a passage ends after a paragraph, by its hash: equal texts are cut alike."""
    return blake3(paragraph.encode("utf-8", "replace")).digest(1)[0] % CUT_ONE_IN == 0
