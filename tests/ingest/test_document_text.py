"""Document texts: pages become Markdown, and no page takes more than linear time."""

from __future__ import annotations

import time

import pytest

from worlddb.ingest.document_text import passages_of, text_document

PAGE = """<!DOCTYPE html><html><head><title>A &amp; B
 at home</title><style>p {a: b}</style>
<script>if (a < b) document.write('</p><p>no</p>');</script></head>
<body><nav><a href="/">menu</a></nav><svg><text>no</text></svg><h1>One &lt;x&gt;</h1>
<p class='a>b' title="it's">A <b>bold</b> word,<br>3 < 4 &amp;&amp; 5 > 2 &#65;&nbsp;&unknown;</p>
<!-- no > no --><ul><li>first<li>second</li></ul><img src=x alt="1 > 0"/>
<table><tr><th>k<th>v</tr><tr><td>1</td><td>2</td></tr></table>
<pre> a
   b</pre><template>no</template><P
 ID=x># no heading</P></body></html>"""
MARKDOWN = """# One <x>

A bold word,
3 < 4 && 5 > 2 A &unknown;

- first

- second

k | v

1 | 2

 a
   b

\\# no heading"""
ENDLESS = {
    "tags": "<a",
    "comments": "<!--",
    "declarations": "<!x",
    "instructions": "<?x",
    "character data": "<![CDATA[",
    "ends": "</a",
    "quotes": "<a b='",
    "both quotes": "<a b=\"'",
    "brackets": "<",
    "scripts": "<script",
    "references": "&#x",
    "numbers": "&#1",
    "entities": "&ampa",
    "titles": "<title>x<b>",
    "blocks": "<div>",
    "cells": "x<td>",
    "skipped": "<nav>",
    "preformatted": "<pre>x",
}


def test_a_page_becomes_markdown() -> None:
    made = text_document(PAGE, "a.html")
    assert (made.title, made.text) == ("A & B at home", MARKDOWN)


@pytest.mark.parametrize(
    ("page", "markdown"),
    [
        ("plain", "plain"),
        ("a <b>c", "a c"),
        ("<p>x<!---->y", "xy"),
        ("<!-->x", "x"),
        ("<![CDATA[no]]>y", "y"),
        ("<?php no ?>b", "b"),
        ("<svg/>x", "x"),
        ("</>x", "x"),
        ("<script>no</scripty>no</script>w", "w"),
        ("&#" + "9" * 5_000 + ";", "\ufffd"),
        ("a <", "a <"),
        ("a <b", "a <b"),
        ("a <b title='x>y", "a y"),
        ("a <!-- no", "a <!-- no"),
    ],
)
def test_what_is_not_closed_or_not_known_is_read_as_far_as_it_goes(
    page: str, markdown: str
) -> None:
    assert text_document(page, "a.html").text == markdown


@pytest.mark.parametrize("end", ["", ">", "-->"])
@pytest.mark.parametrize("shape", ENDLESS)
def test_hostile_pages_are_read_in_linear_time(shape: str, end: str) -> None:
    def seconds(size: int) -> float:
        page = ENDLESS[shape] * (size // len(ENDLESS[shape])) + end
        began = time.thread_time()
        passages_of(text_document(page, "a.html"))
        return time.thread_time() - began

    seconds(1_000)
    short = min(seconds(50_000) for _ in range(3))
    assert min(seconds(400_000) for _ in range(2)) < 24 * short + 0.2


@pytest.mark.parametrize(
    "shape",
    [
        *("# " + " " * 400_000 + "x", "# a" + " #" * 200_000 + " b", "#" * 400_000),
        *("---\n" + "\n---  x" * 50_000, "```\n" * 100_000, "a\n===" * 80_000, "\f" * 400_000),
        *("- " * 200_000, "> " * 200_000, '."' * 200_000, "a" * 400_000, " " * 400_000 + "a"),
        *("# a\n" * 100_000, "###### a\n# b\n" * 30_000),
    ],
    ids=lambda shape: repr(shape[:12]),
)
def test_hostile_markdown_is_cut_in_linear_time(shape: str) -> None:
    began = time.thread_time()
    passages_of(text_document(shape, "a.md"))
    assert time.thread_time() - began < 10


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# a", "a"),
        ("## a ##  ", "a"),
        ("# a # #", "a #"),
        ("# a#", "a#"),
        ("# ##", "##"),
        ("#\ta \t b\t#", "a \t b"),
        ("#a", None),
        ("####### a", None),
        ("    # a", None),
    ],
)
def test_a_heading_is_what_its_line_says(line: str, title: str | None) -> None:
    [passage] = passages_of(text_document(f"{line}\n\nbelow", "a.md"))[-1:]
    assert passage.headings == ((title,) if title else ())
