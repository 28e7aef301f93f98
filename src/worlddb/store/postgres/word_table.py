"""Word table: the text index of a tenant, and how a bulk load writes it.

A row of `words` has the positions of a word in one node. If many nodes of a batch share a word,
they share one row, a list:

    column    of one node                  of a list
    node      the node                     its first node
    length    words of the node            less than zero: how many nodes, negated
    named     words of the node's name     from the first node to the last
    places    32-bit numbers               four numbers a node (how far from the first, length,
                                           named, how many places), then the places of all

Nodes are numbered as they are written, and a batch holds its whole range. So the lists of a word
never overlap each other or a row of one node: the row that covers a node is the last one that
begins at or before it. For prose, lists need a tenth of the rows, and the server's work depends on
the number of rows.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.store.postgres.server_schema import (
    COLUMNS,
    BytesArray,
    NumberArray,
    RowNumbers,
    TextArray,
    insert_sql,
    turned,
)
from worlddb.store.rows import NewText, TextHit

if TYPE_CHECKING:
    from worlddb.store.postgres.server_session import ServerSession

TEXTS_BATCH = 4_000
"""Texts per statement of a load: while the server writes one batch, the next is analysed."""
LISTS_MIN = 64  # texts from which lists pay: below, numpy costs more than the rows saved
COUNTED_MAX = 2_000  # as in a file: with more nodes per word, their number is estimated
PAGE_ROWS = 64  # rows of a word that `latest` reads first; then four times as many
K1, B = 1.2, 0.75  # as in FTS5, so that both stores give the same scores
IDF_MIN = 1e-6  # as FTS5 for a word that half of all nodes have
_TOKEN = re.compile("[0-9a-z\x80-\U0010ffff]+")
"""One word of our analysed text in FTS5: it splits at every ASCII sign."""
_PLACE = "I"  # Places are 32-bit numbers, the lowest byte first.
_PLACE_BYTES = 4
_HEAD = 4  # numbers per node in a list before the places
_HEAD_BYTES = _HEAD * _PLACE_BYTES
_USUAL_PLACES = 1_024  # hardly any text has more words; 16 KB are preallocated
_PLACES = tuple(place.to_bytes(_PLACE_BYTES, "little") for place in range(_USUAL_PLACES))
_COLUMNS = tuple(COLUMNS["words"])
_LISTED = ", ".join(_COLUMNS)
# Of the row beyond the counting limit, only its position is read.
_COUNTS = f"""
    SELECT w.word, c.* FROM unnest($1::text[]) AS w(word), LATERAL (
        SELECT coalesce(sum(many) FILTER (WHERE so_far <= $2), 0)::int8,
            max(ends) FILTER (WHERE so_far <= $2),
            min(node) FILTER (WHERE so_far > $2 AND so_far - many < $2),
            min(substr(places, 1, {_HEAD_BYTES} * many::int4))
                FILTER (WHERE so_far > $2 AND so_far - many < $2)
        FROM (
            SELECT *, sum(many) OVER (ORDER BY node) AS so_far FROM (
                SELECT node, places, CASE WHEN length < 0 THEN -length ELSE 1 END AS many,
                    CASE WHEN length < 0 THEN node + named ELSE node END AS ends
                FROM words x WHERE x.word = w.word ORDER BY node LIMIT $2
            ) rows
        ) counted
    ) c
"""
_FIRST = f"WITH page AS MATERIALIZED (SELECT {_LISTED} FROM words WHERE word = $1{{}}) TABLE page"
_PAGE = " AND node < ${} ORDER BY node DESC LIMIT ${}"
# Lists are read completely; unpacking selects the nodes.
_COVER = f"""
    UNION ALL SELECT {_LISTED} FROM words WHERE word = ${{0}} AND (length < 0
        OR (SELECT bool_or(length < 0) FROM page) OR node IN (SELECT node FROM page))
"""
_FOREVER = 1 << 62  # a row number above all others

Posting = tuple[str, int, int, int, bytes]
"""A row of `words` for one node: word, node, its length, the length of its name, positions."""


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def postings_of(row: int, name: str, content: str) -> list[Posting]:
    """Return the rows of `words` for one node.

    Words are numbered through name and content, with a gap between them, so that no phrase spans
    both.
    """
    named, said = _tokens(indexed(name)), _tokens(indexed_content(content))
    places: dict[str, bytes] = {}
    for place, word in enumerate([*named, "", *said]):
        where = _PLACES[place] if place < _USUAL_PLACES else place.to_bytes(_PLACE_BYTES, "little")
        places[word] = places[word] + where if word in places else where
    del places[""]
    length = len(named) + len(said)
    return [(word, row, length, len(named), places[word]) for word in sorted(places)]


def single_rows(rows: Iterable[Any]) -> Iterator[Posting]:
    """Yield rows of `words` as one for each node: lists are unpacked."""
    for row in rows:
        word, first, length, _, body = row
        if length >= 0:
            yield row
            continue
        numbers = array(_PLACE, body)
        at = -length * _HEAD
        for head in range(0, at, _HEAD):
            after, size, named, times = numbers[head : head + _HEAD]
            start, at = at, at + times
            places = body[start * _PLACE_BYTES : at * _PLACE_BYTES]
            yield word, first + after, size, named, places


def listed_row(postings: Sequence[Posting]) -> Posting:
    """Return the rows of several nodes for one word as one list row."""
    if len(postings) == 1:
        return postings[0]
    word, first, *_ = postings[0]
    heads = array(_PLACE)
    for _, node, length, named, places in postings:
        heads.extend((node - first, length, named, len(places) // _PLACE_BYTES))
    body = heads.tobytes() + b"".join([places for *_, places in postings])
    return word, first, -len(postings), postings[-1][1] - first, body


class NewWords(NamedTuple):
    """The number of texts, the number of their words, and the columns of `words` for them."""

    texts: int
    words: int
    arrays: list[Any]


def words_of(rows: Sequence[NewText]) -> NewWords:
    """Return the words of texts, sorted, so that each page of the index is visited once."""
    if len(rows) >= LISTS_MIN:
        return _lists_of(rows)
    found = sorted([item for row in rows for item in postings_of(*row)])
    words = sum({node: length for _, node, length, *_ in found}.values())
    return NewWords(len(rows), words, turned("words", _COLUMNS, found) if found else [])


def _lists_of(rows: Sequence[NewText]) -> NewWords:
    """Return the words of many texts, in the order of their rows, as lists.

    All words of all texts stand in one array, which is sorted by word once.
    """
    import numpy as np

    said: list[str] = []
    lengths, names = [], []
    for _, name, content in rows:
        before = len(said)
        if name:
            said += _tokens(indexed(name))
        names.append(len(said) - before)
        said += _tokens(indexed_content(content))
        lengths.append(len(said) - before)
    if not said:
        return NewWords(len(rows), 0, [])
    known = sorted(set(said))
    numbers = dict(zip(known, range(len(known)), strict=True))
    word = np.fromiter(map(numbers.__getitem__, said), np.int64, len(said))
    length, named = np.array(lengths), np.array(names)
    text = np.repeat(np.arange(len(rows)), length)
    place = np.arange(len(said)) - np.repeat(np.cumsum(length) - length, length)
    place += place >= named[text]  # The gap between name and content.
    order = np.argsort(word, kind="stable")
    word, text, place = word[order], text[order], place[order].astype("<u4")

    # Where the positions of a node begin, and where the nodes of a word begin.
    is_new = np.ones(len(word), bool)
    is_new[1:] = (word[1:] != word[:-1]) | (text[1:] != text[:-1])
    starts = np.flatnonzero(is_new)
    times = np.diff(starts, append=len(word))
    held, text = word[starts], text[starts]
    firsts = np.flatnonzero(np.diff(held, prepend=-1))
    many = np.diff(firsts, append=len(held))
    node = np.fromiter((row for row, *_ in rows), np.int64, len(rows))[text]
    heads = np.empty((len(held), _HEAD), "<u4")
    heads[:, 0] = node - np.repeat(node[firsts], many)
    heads[:, 1], heads[:, 2], heads[:, 3] = length[text], named[text], times

    ends = firsts + many
    packed, places = heads.tobytes(), place.tobytes()
    bounds = np.append(starts, len(word)) * _PLACE_BYTES
    bodies = [
        places[low:high]
        if size == 1
        else packed[first * _HEAD_BYTES : (first + size) * _HEAD_BYTES] + places[low:high]
        for first, size, low, high in zip(
            firsts.tolist(), many.tolist(), bounds[firsts].tolist(), bounds[ends].tolist(),
            strict=True,
        )
    ]  # fmt: skip
    is_one = many == 1
    columns = [
        TextArray.of(known),
        NumberArray.of(node[firsts]),
        NumberArray.of(np.where(is_one, heads[firsts, 1].astype(np.int64), -many)),
        NumberArray.of(np.where(is_one, heads[firsts, 2], node[ends - 1] - node[firsts])),
        BytesArray.of(bodies),
    ]
    return NewWords(len(rows), len(said), columns)


class WordTable:
    """The words of every node in one session, ranked as by FTS5."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        self._session.need_index("words")
        found: dict[str, int] = {}
        single = [word for word in words if _tokens(word) == [word]]
        for word, count, last, beyond, heads in self._session.run(_COUNTS, (single, COUNTED_MAX)):
            if beyond is not None:
                after = array(_PLACE, heads)[(COUNTED_MAX - count - 1) * _HEAD]
                count, last = COUNTED_MAX, beyond + after
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return {
            word: found[word] if word in found else len(self._having(_tokens(word)))
            for word in words
        }

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        return self._ranked([_tokens(word) for word in words], most)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        if phrase:
            return self._ranked([_tokens(" ".join(words))], most)
        return self._ranked([_tokens(word) for word in words], most, is_all=True)

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        self._session.need_index("words")
        asked = [_tokens(word) for word in words]
        if not all(len(tokens) == 1 for tokens in asked) or not asked:
            held = [set(self._having(tokens)) for tokens in asked if tokens]
            return sorted(set.intersection(*held), reverse=True)[:most] if held else []
        flat = list(dict.fromkeys(token for (token,) in asked))
        found: list[int] = []
        before, page = _FOREVER, max(PAGE_ROWS, most)
        sql = self._joined(len(flat), _PAGE.format(len(flat) + 1, len(flat) + 2))
        while len(found) < most:
            rows = self._session.run(sql, (*flat, before, page))
            first = [row[1] for row in rows if row[0] == flat[0]]
            nodes: dict[str, set[int]] = {word: set() for word in flat}
            for word, node, *_ in single_rows(rows):
                nodes[word].add(node)
            found += sorted(set.intersection(*nodes.values()), reverse=True)
            if len(first) < page:
                break
            before, page = min(first), page * 4
        return found[:most]

    @staticmethod
    def _joined(words: int, page: str = "") -> str:
        """Return the SQL for a page of the first word, joined with the other words."""
        return _FIRST.format(page) + "".join(map(_COVER.format, range(2, words + 1)))

    def named(self, words: str) -> list[int]:
        return sorted(self._having(_tokens(words), in_name=True))

    def average_length(self) -> float:
        texts, words = self._totals()
        return words / texts if texts else 0.0

    def _totals(self) -> tuple[int, int]:
        self._session.need_index("words")
        texts, words = self._session.run("SELECT texts, words FROM heads")[0]
        return texts, words

    def _having(self, phrase: list[str], in_name: bool = False) -> dict[int, tuple[int, int]]:
        """Return the nodes with a phrase: its frequency, and the length of the node."""
        if not phrase:
            return {}
        self._session.need_index("words")
        wanted = list(dict.fromkeys(phrase))
        rows = single_rows(self._session.run(self._joined(len(wanted)), wanted))
        if len(phrase) == 1 and not in_name:
            return {node: (len(body) // _PLACE_BYTES, size) for _, node, size, _, body in rows}
        places: dict[int, dict[str, set[int]]] = {}
        about: dict[int, tuple[int, int]] = {}
        for word, node, length, named, body in rows:
            places.setdefault(node, {})[word] = set(array(_PLACE, body))
            about[node] = length, named
        found = {}
        for node, where in places.items():
            length, named = about[node]
            if len(where) == len(wanted):
                starts = [
                    start
                    for start in where[phrase[0]]
                    if all(start + at in where[word] for at, word in enumerate(phrase))
                    and (not in_name or start < named)
                ]
                if starts:
                    found[node] = len(starts), length
        return found

    def _ranked(
        self, phrases: list[list[str]], most: int, *, is_all: bool = False
    ) -> list[TextHit]:
        """Return the nodes that have phrases by BM25; ties by row."""
        held = [self._having(phrase) for phrase in phrases if phrase]
        if not held:
            return []
        texts, total = self._totals()
        average = total / texts if texts else 1.0
        rows = set.intersection(*map(set, held)) if is_all else set().union(*held)
        scores: Counter[int] = Counter()
        for hits in held:
            idf = max(log((texts - len(hits) + 0.5) / (len(hits) + 0.5)), 0.0) or IDF_MIN
            for row, (often, size) in hits.items():
                if row in rows:
                    weight = often + K1 * (1 - B + B * size / average)
                    scores[row] += idf * (often * (K1 + 1.0) / weight)  # type: ignore[assignment]
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [TextHit(row, float(score)) for row, score in ranked[:most]]

    # -- writes ------------------------------------------------------------------------------------

    def insert(self, rows: Iterable[NewText]) -> None:
        """Index new nodes."""
        given = list(rows)
        for at in range(0, len(given), TEXTS_BATCH):
            self.add(words_of(given[at : at + TEXTS_BATCH]))

    def add(self, new: NewWords) -> None:
        """Write the words of analysed texts."""
        if new.arrays:
            self._session.keep(insert_sql("words", _COLUMNS, ""), new.arrays)
        self._count(new.texts, new.words)

    def erase(self, rows: Sequence[int]) -> None:
        """Remove the words of nodes whose texts are still stored."""
        self._session.need_index("words")
        sql = "SELECT row, name, content FROM nodes WHERE row = ANY($1)"
        found = [postings_of(*row) for row in self._session.run(sql, (RowNumbers(rows),))]
        gone = {(item[0], item[1]) for items in found for item in items}
        covering = (
            f"SELECT {_LISTED} FROM words WHERE length < 0 AND (word, node) IN (SELECT g.word, "
            "(SELECT max(w.node) FROM words w WHERE w.word = g.word AND w.node <= g.node) "
            "FROM unnest($1::text[], $2::int8[]) AS g(word, node))"
        )
        given = list(gone)
        asked = TextArray.of([word for word, _ in given]), RowNumbers(node for _, node in given)
        stale = self._session.run(covering, asked) if given else []
        gone_rows = sorted(gone | {(word, node) for word, node, *_ in stale})
        self._session.executemany("DELETE FROM words WHERE word = ? AND node = ?", gone_rows)
        left = [[it for it in single_rows([row]) if it[:2] not in gone] for row in stale]
        self._session.insert("words", _COLUMNS, [listed_row(those) for those in left if those])
        self._count(0, -sum(items[0][2] for items in found if items))

    def _count(self, texts: int, words: int) -> None:
        sql = "UPDATE heads SET texts = texts + $1, words = words + $2"
        self._session.keep(sql, (texts, words))


class ServerLoad:
    """A bulk load that defers the words of its texts to its end.

    Rows are sent as one array per column, a batch in one statement, by a thread, so that the server
    writes nodes while the next ones are checked. COPY is not possible: PostgreSQL refuses it under
    row-level security.
    """

    def __init__(self, session: ServerSession) -> None:
        self.names = {"words"}
        self._session = session
        self._texts: list[NewText] = []
        self._batches: list[Future[NewWords]] = []
        self._sender = ThreadPoolExecutor(max_workers=1)  # The thread ends with it.

    def keep(self, rows: Iterable[NewText]) -> None:
        """Keep texts in memory until their words are written; send their nodes meanwhile."""
        self._texts.extend(rows)
        self._session.flush_later(self._sender)

    def analyse(self, pool: Executor) -> None:
        """Analyse the words while the server writes, which needs no Python."""
        self._batches = [pool.submit(words_of, batch) for batch in self._split()]

    def _split(self) -> list[list[NewText]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build(self) -> None:
        """Write the words, and end the load."""
        self._session.deferred = None
        table = WordTable(self._session)
        for batch in self._batches or map(words_of, self._split()):
            table.add(batch.result() if isinstance(batch, Future) else batch)
            self._session.flush_later(self._sender)
