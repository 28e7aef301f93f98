"""Texts that others wrote can neither move the cursor nor hide themselves on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import worlddb
from worlddb import Memory
from worlddb.model.text_safety import visible, visible_json

from .command import in_process

HIDDEN = "\x1b\x9b\x07\x7f\r\u061c\u200b\u200e\u200f\u2028\u202e\u2066\ufeff\U000e0041\u3164"
"""ANSI and other control characters, direction marks, and letters that nobody sees."""
NAME = "Eve\u202eda\x1b[31m"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has hidden characters wherever a text can have them."""
    path = tmp_path_factory.mktemp("hostile") / "store.db"
    with Memory(path, actor="actor\u202e") as memory:
        for text in (f"The boat{HIDDEN} is blue.", f"The boat{HIDDEN} is red."):
            memory.write(text, source=f"mail{HIDDEN}", metadata={f"key{HIDDEN}": f"value{HIDDEN}"})
        one, other = memory.list()
        with memory.db.transaction(actor=f"actor{HIDDEN}") as tx:
            aliases = [f"Alias{HIDDEN}"]
            eve = tx.create_node(type="Entity", name=NAME, aliases=aliases, content=f"x{HIDDEN}")
            eva = tx.create_node(type="Topic", name=NAME + "!", content=f"y{HIDDEN}")
            tx.write_edge("contradicts", one.id, other.id, metadata={"reason": f"no{HIDDEN}"})
            tx.write_edge("same_as", eve.id, eva.id, metadata={"why": f"so{HIDDEN}"})
        memory.recall("boat")
    return path


COMMANDS = (
    ["list"],
    ["recall", "boat", "--explain"],
    ["recall", f"boat{HIDDEN}", "--everyone"],
    ["recall", "Eve", "--everyone", "--type", "Entity"],
    ["read", "{id}"],
    ["scopes"],
    ["log"],
    ["diff", "0", "2"],
    ["proposals"],
    ["check"],
    ["consolidate", "--dry-run"],
    ["retire", f"{HIDDEN}"],
    ["read", f"ffff{HIDDEN}"],
)


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:1]))
def test_no_command_prints_a_hidden_character(
    hostile: Path, command: list[str], as_json: bool
) -> None:
    with Memory(hostile) as memory:
        ident = str(memory.list()[0].id)
    arguments = [ident if one == "{id}" else one for one in command]
    done = in_process(*arguments, "--db", hostile, *(["--json"] if as_json else []))
    found = re.findall(f"[{re.escape(HIDDEN)}]", done.out + done.err)
    assert found == []
    if as_json and done.code == 0:
        assert json.loads(done.out) is not None


def test_json_says_the_same_with_escapes() -> None:
    document = json.dumps({"text": f"a{HIDDEN}é"}, ensure_ascii=False)
    assert json.loads(visible_json(document)) == {"text": f"a{HIDDEN}é"}
    assert visible("a\tb\nc é 日本 👩\u200d🚀") == "a\tb\nc é 日本 👩\u200d🚀"


def test_lines_for_a_prompt_show_hidden_characters() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            tx.create_node(type="Memory", content=f"The boat{HIDDEN} is blue.")
        text = db.recall("boat").to_text()
    assert re.findall(f"[{re.escape(HIDDEN)}]", text) == []
    assert "\\u202e" in text


def test_a_text_of_variation_selectors_is_shown_and_an_emoji_stays() -> None:
    smuggled = "A boat" + "".join(chr(0xE0100 + ord(letter)) for letter in "obey")
    assert visible(smuggled).count("\\U000e01") == 4
    assert json.loads(visible_json(json.dumps(smuggled, ensure_ascii=False))) == smuggled
    for harmless in ("\u2764\ufe0f", "\u845b\U000e0100\u57ce", "\U0001f468\u200d\U0001f469"):
        assert visible(harmless) == harmless
