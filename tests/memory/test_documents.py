"""Documents: cut into passages with their places; again, only what has changed is written."""

from __future__ import annotations

import io
import random
from itertools import pairwise
from pathlib import Path

import pytest

from worlddb import ConflictError, InvalidInputError, Memory
from worlddb.ingest.document_text import PASSAGE_CHARS_MAX, document_of, passages_of

GUIDE = """\
# Guide

Sarah Chen wrote the guide of the Falcon project.

## Install

Run the installer on Linux.

```sh
# no heading
make
```

Settings
--------

The port is 8765.

### Backups ###

Copy the file every night.
"""


def sent(text: str, name: str = "guide.md") -> dict[str, str]:
    return {"text": text, "name": name}


def test_a_document_is_a_world_of_passages_with_their_places(memory: Memory) -> None:
    done = memory.write(document=sent(GUIDE), user_id="ada", source="handbook", tags=["manual"])
    assert done.created
    assert "Sarah Chen" in [one.name for one in done.entities]
    whole = memory.read(done.id)
    assert (whole.type, whole.metadata["title"]) == ("Document", "Guide")
    parts = [memory.db.get(node.id) for node in memory.db.children(done.id)]
    assert [part.type for part in parts] == ["Passage"] * 4
    assert [part.name for part in parts] == [
        "Guide",
        "Guide > Install",
        "Guide > Settings",
        "Guide > Settings > Backups",
    ]
    for number, part in enumerate(parts, 1):
        place = part.metadata
        assert GUIDE[place["start"] : place["end"]] == part.content
        assert (place["number"], place["document"], place["tags"]) == (
            number,
            "guide.md",
            ["manual"],
        )
        assert part.provenance == ("handbook",)
    assert "# no heading" in parts[1].content
    hit = memory.recall("How do I make backups?", user_id="ada")[0]
    assert hit.node.metadata["headings"] == ["Guide", "Settings", "Backups"]
    assert "Guide > Settings > Backups: Copy the file" in hit.text
    assert "Guide > Settings > Backups: Copy" in memory.context("backups", user_id="ada").text
    where = {"headings": {"$contains": "Settings"}, "document": "guide.md"}
    chosen = memory.recall("guide of backups", user_id="ada", where=where)
    assert {one.node.name for one in chosen} == {"Guide > Settings", "Guide > Settings > Backups"}


def test_the_same_document_again_writes_nothing(memory: Memory) -> None:
    first = memory.write(document=sent(GUIDE))
    again = memory.write(document=sent(GUIDE))
    assert (again.created, again.commit, again.id) == (False, None, first.id)


def test_the_same_document_with_an_end_may_come_again(memory: Memory) -> None:
    first = memory.write(document=sent(GUIDE), ttl="30d")
    ends = memory.read(first.id).valid_to
    for ttl in (None, "60d"):
        again = memory.write(document=sent(GUIDE), ttl=ttl)
        assert (again.created, again.id) == (False, first.id)
    assert memory.read(first.id).valid_to == ends


def test_a_changed_document_supersedes_only_what_changed(memory: Memory) -> None:
    first = memory.write(document=sent(GUIDE))
    before = {node.name: node.id for node in memory.db.children(first.id)}
    changed = "A new line above.\n\n" + GUIDE.replace("8765", "9000")
    done = memory.write(document=sent(changed))
    assert (done.created, done.id) == (False, first.id)
    assert done.superseded == (before["Guide > Settings"],)
    live = [node for node in memory.db.children(first.id) if node.valid_to is None]
    kept = {node.name: node.id for node in live if node.id in before.values()}
    assert kept == {key: value for key, value in before.items() if key != "Guide > Settings"}
    for node in live:  # Places are told anew, also those of kept passages.
        assert changed[node.metadata["start"] : node.metadata["end"]] == node.content
    assert memory.recall("Which port?")[0].node.content == "The port is 9000."
    old = memory.read(before["Guide > Settings"])
    assert [memory.read(one).text for one in old.superseded_by] == ["The port is 9000."]
    text = memory.read(first.id).text
    assert "8765" not in text
    assert text.index("A new line") < text.index("Falcon") < text.index("9000")
    shorter = memory.write(document=sent(changed.replace("Copy the file every night.\n", "")))
    assert before["Guide > Settings > Backups"] in shorter.superseded
    assert memory.db.check() == []


def test_an_edit_moves_few_cuts_of_a_long_text(memory: Memory) -> None:
    words = random.Random(7)
    paragraphs = [
        " ".join("".join(words.choices("abcdefg", k=6)) for _ in range(words.randint(5, 60))) + "."
        for _ in range(200)
    ]
    first = memory.write(document=sent("\n\n".join(paragraphs), "long.txt"), extractor="verbatim")
    count = len(memory.db.children(first.id))
    assert count > 40
    paragraphs.insert(3, "One more paragraph about gardening.")
    done = memory.write(document=sent("\n\n".join(paragraphs), "long.txt"), extractor="verbatim")
    assert 0 < len(done.superseded) <= 4


def test_a_document_ends_and_is_erased_as_a_whole(memory: Memory) -> None:
    done = memory.write(document=sent(GUIDE), user_id="ada")
    memory.write(document=sent(GUIDE.replace("8765", "9000")), user_id="ada")
    memory.write("Tea is at five.", user_id="ada")
    with pytest.raises(ConflictError, match="whole document; amend one of its passages"):
        memory.amend(done.id, "something else")
    memory.retire(done.id)
    assert [hit.node.type for hit in memory.recall("port backups tea", user_id="ada")] == ["Memory"]
    again = memory.write(document=sent(GUIDE), user_id="ada")
    assert again.created
    assert again.id != done.id
    for ident in (done.id, again.id):
        memory.erase(ident)
    found = memory.recall("8765 9000 port", user_id="ada", include_retired=True)
    assert [hit.node.type for hit in found if "port" in hit.node.content] == []
    kept = memory.list(user_id="ada", include_retired=True)
    assert [one.text for one in kept] == ["Tea is at five."]
    memory.write(document=sent(GUIDE), user_id="ada")
    assert len(memory.retire_all(user_id="ada", where={"document": "guide.md"})) == 5


def test_two_scopes_have_documents_of_their_own_and_may_share_one(memory: Memory) -> None:
    one = memory.write(document=sent(GUIDE), user_id="ada")
    two = memory.write(document=sent(GUIDE), user_id="bob")
    assert one.id != two.id
    both = memory.write(document=sent(GUIDE), user_id="ada", agent_id="helper")
    assert both.id == one.id
    assert memory.recall("Which port?", agent_id="helper")[0].node.content == "The port is 8765."
    assert memory.bound(user_id="bob").recall("Which port?")[0].node.parent == two.id


def test_what_a_document_says_in_the_first_person_is_nobodys(memory: Memory) -> None:
    memory.write("I live in Oslo.", user_id="ada")
    memory.write(document=sent("# Diary\n\nI am Anna. I live in Rome.\n"), user_id="ada")
    texts = {hit.node.content: hit for hit in memory.recall("Where do I live?", user_id="ada")}
    assert not texts["I live in Oslo."].outdated
    assert memory.recall("Oslo", user_id="ada")[0].node.valid_to is None


def test_a_document_too_long_to_be_read_at_once_waits(memory: Memory) -> None:
    lines = "\n\n".join(
        f"Line {number} is about Berlin and nothing else." for number in range(7000)
    )
    done = memory.write(document=sent(lines, "long.md"), user_id="ada")
    assert done.pending is not None
    [waits] = memory.db.pending()
    assert waits.id == done.id
    memory.db.extract_pending("rules")
    assert memory.db.pending() == []
    assert "Berlin" in [
        node.name for node in memory.db.query().filter_type("Entity").execute().nodes
    ]


def test_a_key_belongs_to_one_text(memory: Memory) -> None:
    first = memory.write(document=sent(GUIDE), idempotency_key="k1")
    assert memory.write(document=sent(GUIDE), idempotency_key="k1").id == first.id
    with pytest.raises(ConflictError):
        memory.write(document=sent("# Other\n\ntext\n"), idempotency_key="k1")


def test_files_are_read_by_path_and_never_for_a_mapping(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n\nThe kettle is blue.\n", encoding="utf-8")
    first = memory.write(document=path)
    assert memory.write(document=str(path)).id == first.id
    as_text = memory.write(document=sent(str(path), "x"))
    assert memory.read(as_text.id).text.endswith(str(path))
    with pytest.raises(InvalidInputError, match="there is no such file"):
        memory.write(document="missing.md")
    with pytest.raises(InvalidInputError, match="No such file"):
        memory.write(document=tmp_path / "missing.md")
    for wrong in ({"path": str(path)}, {"text": "a", "media_type": "image/png"}, {"text": " "}, 5):
        with pytest.raises(InvalidInputError):
            memory.write(document=wrong)  # type: ignore[arg-type]
    (tmp_path / "latin.txt").write_bytes("Tür".encode("latin-1"))
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        memory.write(document=tmp_path / "latin.txt")
    with pytest.raises(InvalidInputError, match="either text or messages, or a document"):
        memory.write("a", document=path)


@pytest.mark.parametrize(
    "wordless",
    [
        sent("<script>let a = 1</script><img src=a.png>", "a.html"),
        sent("\n\n```\n```\n\n", "a.md"),
        sent("<p> </p>", "a.html"),
    ],
    ids=lambda one: one["text"],
)
def test_a_document_without_words_is_refused(memory: Memory, wordless: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=rf"{wordless['name']}: has no (text|words)"):
        memory.write(document=wordless, user_id="ada")
    assert not memory.list(user_id="ada").memories


def test_html_keeps_headings_lists_and_tables() -> None:
    page = """<html><head><title>My page</title><style>p {}</style></head><body>
      <nav>Home</nav><h1>Top</h1><p>First <b>bold</b> &amp; more<br>next line
      <h2>Inner</h2><ul><li>one<li>two</ul><p># no heading</p>
      <table><tr><th>a<th>b<tr><td>1<td>2</table><script>x()</script></body>"""
    document = document_of({"text": page, "media_type": "text/html; charset=utf-8"})
    assert (document.name, document.title) == ("My page", "My page")
    found = [(one.path, one.text) for one in passages_of(document)]
    assert found == [
        ("Top", "First bold & more\nnext line"),
        ("Top > Inner", "- one\n\n- two\n\n\\# no heading\n\na | b\n\n1 | 2"),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_passages_hold_all_words_within_their_bounds(seed: int) -> None:
    luck = random.Random(seed)
    signs = [
        "word ",
        "Ende. ",
        "\n",
        "\n\n",
        "# H\n",
        "```\n",
        "---\n",
        "\f",
        "x" * 900,
        "é",
        "== ",
    ]
    text = "".join(luck.choices(signs, k=luck.randint(1, 200)))
    document = document_of({"text": "start " + text, "name": "a.md"})
    found = passages_of(document)
    for one in found:
        assert document.text[one.start : one.end] == one.text
        assert len(one.text) <= PASSAGE_CHARS_MAX
        assert one.text.strip()
    places = [(one.start, one.end) for one in found]
    assert places == sorted(places)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    told = " ".join([*(one.text for one in found), *(one.path for one in found)])
    for word in ("word", "Ende", "é"):
        assert (word in document.text) == (word in told)


def test_the_pages_of_a_pdf_are_places(memory: Memory, tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="the extra 'documents' is not installed")
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf("The owl sleeps by day.", "The fox hunts at night."))
    memory.write(document=path)
    hit = memory.recall("When does the fox hunt?")[0]
    assert hit.node.content == "The fox hunts at night."
    assert (hit.node.metadata["page"], hit.node.metadata["number"]) == (2, 2)
    path.write_bytes(b"%PDF-1.4 damaged")
    with pytest.raises(InvalidInputError, match="cannot be read as PDF"):
        memory.write(document=path)


def test_headings_of_a_docx_are_kept(memory: Memory, tmp_path: Path) -> None:
    docx = pytest.importorskip("docx", reason="the extra 'documents' is not installed")
    made = docx.Document()
    made.add_heading("Animals", 1)
    made.add_heading("Owls", 2)
    made.add_paragraph("The owl sleeps by day.")
    made.add_table(1, 2).rows[0].cells[1].text = "feathers"
    data = io.BytesIO()
    made.save(data)
    path = tmp_path / "animals.docx"
    path.write_bytes(data.getvalue())
    memory.write(document=path)
    hit = memory.recall("When does the owl sleep?")[0]
    assert hit.node.name == "Animals > Owls"
    assert "feathers" in hit.node.content


def test_a_missing_library_is_named(memory: Memory, tmp_path: Path) -> None:
    import sys

    path = tmp_path / "paper.pdf"
    path.write_bytes(b"%PDF-1.4")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pypdf", None)
        with pytest.raises(InvalidInputError, match=r"pip install 'worlddb\[documents\]'"):
            memory.write(document=path)


def pdf(*pages: str) -> bytes:
    """Return a PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources "
            f"<< /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    made, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    start, count = len(made), len(objects) + 1
    made += f"xref\n0 {count}\n0000000000 65535 f \n{table}".encode()
    made += f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return made
