"""Other languages: the text lane finds inflected words as a search engine's analyser would."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from itertools import pairwise
from math import log1p
from pathlib import Path

import pytest

import worlddb
from worlddb import RecallSettings
from worlddb.index.held_world import weighed_words
from worlddb.language import text_tokens
from worlddb.language.text_tokens import (
    LANGUAGES,
    asked,
    indexed,
    indexed_content,
    language_of,
    spans,
    words,
)
from worlddb.language.word_forms import sections
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import View, moment_of, wall_clock

PAIRS = json.loads(Path(__file__).with_name("language_pairs.json").read_text(encoding="utf-8"))
INFLECTED = PAIRS["inflected"]
TEXT_ONLY = RecallSettings(weights={"text": 1.0}, weighing=None, worlds=False)


def analysed(text: str, code: str) -> list[str]:
    """Return what a search engine's default analyser makes of a text: stems, or pairs of signs."""
    if code in ("zh", "ja"):
        signs = [sign for sign in text if sign.isalpha()]
        return ["".join(pair) for pair in pairwise(signs)]
    stop = {word for row in sections("language", "function_words.txt")[code] for word in row}
    stemmer = import_module("snowballstemmer").stemmer(LANGUAGES[code].stemmer)
    said = "".join(char if char.isalnum() else " " for char in text.lower()).split()
    return [stemmer.stemWord(word) for word in said if word not in stop]


def analyser_first(pairs: list[list[str]], code: str) -> int:
    """Return how often BM25 over those words puts the right text first."""
    texts = [Counter(analysed(text, code)) for text, _ in pairs]
    average = sum(map(Counter.total, texts)) / len(texts)
    first = 0
    for right, (_, question) in enumerate(pairs):
        scores = [0.0] * len(texts)
        for word in set(analysed(question, code)):
            having = sum(word in text for text in texts)
            for at, text in enumerate(texts):
                norm = 1.2 * (0.25 + 0.75 * text.total() / average)
                rarity = log1p((len(texts) - having + 0.5) / (having + 0.5))
                scores[at] += rarity * 2.2 * text[word] / (text[word] + norm)
        first += scores[right] > max([*scores[:right], *scores[right + 1 :]])
    return first


@pytest.mark.parametrize("code", INFLECTED)
def test_inflected_words_are_found_as_well_as_by_a_search_engine(code: str) -> None:
    pairs = INFLECTED[code]
    assert len(pairs) == 20
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            ids = [tx.create_node(type="Memory", content=text).id for text, _ in pairs]
        first = 0
        for right, (_, question) in zip(ids, pairs, strict=True):
            found = db.recall(question, k=1, settings=TEXT_ONLY)
            first += bool(found.hits) and found[0].id == right
    assert first >= max(18, analyser_first(pairs, code))


@pytest.mark.parametrize("code", [code for code in INFLECTED if code in LANGUAGES])
def test_the_language_of_a_sentence_and_of_a_question_is_known(code: str) -> None:
    said = [text for pair in INFLECTED[code] for text in pair]
    known = [language_of(text) for text in said]
    assert known.count(code) >= 0.9 * len(said)


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Paris last week.",
        "Die Hard was on TV",
        "We met in Los Angeles, near La Brea.",
        "The café on Rue de la Paix is closed.",
        "José and Zoë like the El Niño song",
        "Pick up milk",
        "东京都",
        "",
    ],
)
def test_english_and_what_is_no_known_language_is_indexed_as_before(text: str) -> None:
    assert language_of(text) is None
    assert indexed_content(text) == indexed(text)


def test_a_word_is_found_in_a_text_whose_language_was_guessed_wrong() -> None:
    text = "Der Zahnarzt zog den Weisheitszahn."
    for guess in (None, *LANGUAGES):
        said = set(words(text, guess))
        assert said & set(asked("Weisheitszahn", LANGUAGES))


def test_an_index_with_english_stems_alone_is_searched_as_before() -> None:
    question = "Wer zog den Weisheitszahn?"
    assert set(asked(question, LANGUAGES)) >= {"weisheitszahn"}
    assert "weisheitszahn" in words("Der Zahnarzt zog den Weisheitszahn.")


def test_tokens_of_a_language_are_as_many_as_the_plain_ones_and_in_their_places() -> None:
    text = "L'école d'Anna-Marie coûte 1.200 € – C++ für 3 Kinder, 东京!"
    for code in LANGUAGES:
        assert len(words(text, code)) == len(words(text))
        placed = list(spans(text, None, code))
        assert [token for token, _, _ in placed] == words(text, code)
        assert [place[1:] for place in placed] == [place[1:] for place in spans(text)]


def test_the_stems_of_two_languages_never_meet() -> None:
    english = set(words("The kind pain of a pan and a chat, per plan and come."))
    for code in LANGUAGES:
        assert not english & {
            token
            for token in words("kinder pain pan chat per plan come", code)
            if not token.isascii()
        }


def test_a_phrase_and_all_words_are_matched_in_their_language() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            node = tx.create_node(
                type="Memory", content="Die Nachbarn haben ihre Fahrräder verkauft."
            )
        for said in ("ihre Fahrräder", "ihr Fahrrad", "Fahrrad verkauften"):
            query = db.query().text(said, "all")
            assert [it.id for it in query.execute().nodes] == [node.id]
        phrase = db.query().text("ihre Fahrräder", "phrase")
        assert [it.id for it in phrase.execute().nodes] == [node.id]
        other = db.query().text("Fahrräder ihre", "phrase")
        assert not other.execute().nodes


def test_the_snippet_marks_the_inflected_word() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            tx.create_node(type="Memory", content="Mi hermana trabaja en un hospital de Valencia.")
        found = db.recall("¿Dónde trabajan mis hermanas?")
        assert "**hermana** **trabaja**" in found.snippet(found[0]).marked()


GERMAN = "Wir haben zwei alte Häuser gesehen."


def wide_text(db: worlddb.WorldDB, question: str) -> list[int]:
    """Return the rows that the text index of the whole store finds."""
    with db.engine.store.read() as reader:
        wide = db.engine.search.wide()
        view = View(
            reader,
            moment_of(reader, worlddb.AsOf(), wall_clock()),
            worlds=(ROOT_ROW,),
            members=True,
            include_ended=False,
        )
        said = weighed_words(question, wide.languages(view))
        return [row for row, _ in wide.text(view, said, 5)]


def test_a_store_with_an_older_text_index_is_whole_and_found_and_made_anew_by_reindex(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worlddb.open(":memory:", embedder=None) as db:
        with monkeypatch.context() as before, db.transaction() as tx:
            before.setattr(text_tokens, "language_of", lambda text: None)
            tx.create_node(type="Memory", content=GERMAN)
        assert not db.check()
        assert wide_text(db, "Häuser")
        assert not wide_text(db, "Haus")
        db.reindex()
        assert not db.check()
        assert wide_text(db, "Häuser")
        assert wide_text(db, "Haus")


def test_a_text_index_with_old_and_new_stems_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    with worlddb.open(":memory:", embedder=None) as db:
        with monkeypatch.context() as before, db.transaction() as tx:
            before.setattr(text_tokens, "language_of", lambda text: None)
            tx.create_node(type="Memory", content=GERMAN)
        with db.transaction() as tx:
            tx.create_node(type="Memory", content="Ich habe ein Haus und einen Roller.")
        assert not db.check()
        assert len(wide_text(db, "Häuser")) == 2
