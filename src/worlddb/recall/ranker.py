"""Weigh: the last word on the order of hits, from everything that is known about each.

Ranks of lanes say who is ahead, not by how much. Here scores count: what a text says (words,
meaning), who said it and whether they tell of themselves, what was said before it and in the same
world, and when, each made comparable by how far it stands out. Then the question is asked once
more, drawn towards the best answers so far: what they have in common is probably what was meant.
Where an embedder keeps the words of a text apart, the best are at last read word by word (`late`).
No model of ours, no randomness; the weights were fitted by `bench.fitting`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from worlddb.errors import InvalidInputError
from worlddb.language.ages import asks_age
from worlddb.language.dates import spans_of
from worlddb.language.form import ASKS, CHARS, SAYS_AGE, TELLING
from worlddb.language.question import speakers_of
from worlddb.language.telling import DONE, NOTHING, wants_question
from worlddb.model.inputs import from_micros, to_micros
from worlddb.model.retention import RetentionSettings, retention
from worlddb.store.protocol import Reader
from worlddb.view.visibility import Moment

Scores = NDArray[np.float64]

DAY_MICROS = 86_400_000_000
YEARS_MAX = 200
SHARE_OF = 3
"""How many of the best nodes of a world speak for it."""
FEEDBACK_FROM = 3
LOOKED_AT = 1_000
READ_CLOSELY = 400
"""How many of the best are read word by word."""
SHORT = 400
"""How many characters a turn has that is answered as a whole."""
BREVITY_MAX = 1.5
LINE = 80
"""How many characters a question has at most that asks on ("What model is it?")."""
RELATIVE = 0.3
"""What a day that is counted back ("two weeks ago") is worth beside one that is named."""
ONLY_ASKS = 16.0
"""How far a memory that only asks falls behind: it has the words of questions, no answer."""
TINY = 1e-9
COMPANY = 50
FOUND_COMPANY = 400
"""In how large a company at least that what lanes found stands out. About as many turns had the
worlds that weights were fitted in: among few, the only text that has the word would count for less
than who said it."""
USUAL_SPREAD = {"vector": 0.08}
"""How far cosines of unrelated texts spread; names that do not occur score 0."""


class Usual(NamedTuple):
    """How nodes score that have nothing to do with the question."""

    mean: float
    spread: float


ZERO = Usual(0.0, 0.0)
UNIT = Usual(0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each thing counts; 0 leaves it out. `asker` is the name of the one who asks."""

    vector: float = 0.4
    late: float = 0.95
    text: float = 0.22
    graph: float = 0.3
    speaker: float = 3.0
    world: float = 0.6
    opening: float = 0.3
    """How much it counts that a turn opens a topic, and does not follow a turn just like it. What
    answers a short question is no less for it."""
    reply: float = 0.18
    """How much the words of the turn before count, which it may answer: of a short one most."""
    telling: float = 0.3
    """How much it counts that a turn tells of the one who speaks, and does not only ask."""
    age: float = 2.0
    """How much it counts that a text says an age, where one is asked for."""
    date: float = 2.5
    claim: float = 1.0
    """How far what states the very thing that is asked for ("Where do I live?") is lifted above
    all else: 1 is above it, 0 not at all."""
    feedback: float = 0.5
    asker: str = "user"
    """The name under which turns of the one who asks are kept."""
    retention: float = 0.0
    """How much it counts that a memory is fresh or often recalled; by default not at all."""
    fading: RetentionSettings = field(default_factory=RetentionSettings)

    def __post_init__(self) -> None:
        others = ("asker", "fading")
        for name in (item.name for item in fields(self) if item.name not in others):
            check_weight(getattr(self, name), name)
        if not isinstance(self.asker, str):
            raise InvalidInputError(f"asker: give a name, not {self.asker!r:.100}")
        if not isinstance(self.fading, RetentionSettings):
            raise InvalidInputError(f"fading: give RetentionSettings(…), not {self.fading!r:.100}")


def check_weight(value: Any, what: str) -> None:
    """Check how much something counts.

    Raises:
        InvalidInputError: not a number from 0 on.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise InvalidInputError(f"weight of {what}: give a number from 0 on, not {value!r:.40}")


class Cosines(Protocol):
    """The vectors of the candidates, wherever they lie."""

    def of(self, vector: NDArray[np.float32]) -> Scores:
        """Return how close each candidate is to a vector."""

    def mean(self, places: Sequence[int]) -> NDArray[np.float32]:
        """Return the mean of some candidates' vectors."""


class Closely(Protocol):
    """What reads candidates word by word."""

    def read(self, places: Sequence[int]) -> Scores:
        """Return how well each of some candidates answers the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What is weighed: one place in each array for each node.

    `speakers` are the names of those who spoke, and `spoken` says by number who said what.
    `before` is the place of the turn before, the own one if there is none, and -1 for what is no
    turn of a conversation. `forms` has a row for each, see `Form`; `claims` says which of them
    state what is asked for. `usual_text` is how the text lane scores whatever was said.
    """

    lanes: Mapping[str, Scores]
    cosines: Cosines | None
    closely: Closely | None
    parents: NDArray[np.int64]
    starts: NDArray[np.int64]
    speakers: Sequence[str]
    spoken: NDArray[np.int64]
    before: NDArray[np.intp]
    forms: NDArray[np.int64]
    usual_text: Usual = ZERO
    claims: NDArray[np.bool_] | None = None
    retained: Scores | None = None

    @property
    def explained(self) -> Mapping[str, Scores]:
        """The scores that hits tell of: those of the lanes, and how well each is kept."""
        if self.retained is None:
            return self.lanes
        return {**self.lanes, "retention": self.retained}


def turns_before(parents: NDArray[np.int64], is_turn: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the place of the turn before each turn in its world; see `Candidates.before`.

    Places are in the order of writing.
    """
    before = np.full(len(parents), -1, dtype=np.intp)
    turns = np.flatnonzero(is_turn)
    turns = turns[np.argsort(parents[turns], kind="stable")]
    if len(turns):
        is_first = np.r_[True, parents[turns][1:] != parents[turns][:-1]]
        before[turns] = np.where(is_first, turns, np.r_[turns[:1], turns[:-1]])
    return before


class Weighed(NamedTuple):
    """The final score of each candidate, and the parts that make it up, by name."""

    scores: Scores
    parts: Mapping[str, Scores]

    def matched(self, lanes: Mapping[str, Scores]) -> NDArray[np.bool_]:
        """Return what was found at all: by a lane, or since, by its words or by what it says."""
        since = [self.parts[part] for part in ("late", "age") if part in self.parts]
        found: NDArray[np.bool_] = np.any(np.stack([*lanes.values(), *since]) > 0, axis=0)
        return found


def weigh(
    found: Candidates,
    question: str,
    vector: NDArray[np.float32] | None,
    asked_at: datetime,
    weights: Weights,
) -> Weighed:
    """Return the final score of each candidate, and why."""
    named, side = speakers_of(question, weights.asker)
    known = {
        "speaker": weights.speaker * _said_by(found, named, side, weights.asker),
        "date": weights.date * _dated(found.starts, question, asked_at),
    }
    if side is None or not side.startswith("not "):
        # "What did you suggest" asks for no tale.
        behind = 0.0 if wants_question(question) else ONLY_ASKS
        known["telling"] = weights.telling * _telling(found, behind)
    if asks_age(question):
        known["age"] = weights.age * found.forms[:, SAYS_AGE].astype(np.float64)
    if found.retained is not None:
        known["retention"] = weights.retention * found.retained
    lanes = dict(found.lanes)
    weighed = _combined(found, lanes, known, weights)
    if weights.feedback and vector is not None and found.cosines is not None:
        best = _best_of_worlds(weighed.scores, found.parents)
        # Of one or two worlds, the first answer would only repeat itself.
        if len(best) == FEEDBACK_FROM:
            drawn = vector + weights.feedback * found.cosines.mean(best)
            lanes["vector"] = found.cosines.of(drawn)
            weighed = _combined(found, lanes, known, weights)
    if weights.late and found.closely is not None:
        best = np.argsort(-weighed.scores, kind="stable")[:READ_CLOSELY].tolist()
        read = found.closely.read(best)
        lanes["late"] = np.full(len(weighed.scores), read.min())
        lanes["late"][best] = read
        weighed = _combined(found, lanes, known, weights)
    return _lifted(weighed, found.claims, weights.claim)


def _lifted(weighed: Weighed, claims: NDArray[np.bool_] | None, weight: float) -> Weighed:
    """Return the scores with what states the very answer lifted above what does not."""
    if claims is None or not weight or not claims.any() or claims.all():
        return weighed
    short = weighed.scores[~claims].max() - weighed.scores[claims].min() + 1.0
    lift: Scores = np.where(claims, weight * max(0.0, short), 0.0)
    return Weighed(weighed.scores + lift, {**weighed.parts, "claim": lift})


def _combined(
    found: Candidates,
    lanes: Mapping[str, Scores],
    known: Mapping[str, Scores],
    weights: Weights,
) -> Weighed:
    """Return what the lanes, the worlds and the turns before say, beside what is `known`."""
    parts: dict[str, Scores] = {}
    said: Scores = np.zeros(len(found.parents))
    for lane, scores in lanes.items():
        # What was read word by word is relative to the others that were read: nobody is missing.
        company = COMPANY if lane == "late" else FOUND_COMPANY
        usual = found.usual_text if lane == "text" else Usual(0.0, USUAL_SPREAD.get(lane, 0.0))
        stands_out = standing_out(scores, usual, company)
        parts[lane] = getattr(weights, lane) * stands_out
        if lane in ("vector", "late") or "vector" not in lanes:
            said = said + parts[lane]
    meaning = standing_out(said)
    parts |= known
    if weights.world:
        parts["world"] = weights.world * _share_of_world(meaning, found.parents)
    if weights.opening:
        heard = np.where(answers(found), 0.0, _said_before(meaning, found.before))
        parts["opening"] = -weights.opening * heard
    if weights.reply and "text" in lanes:
        heard = _said_before(_asked_on(found, lanes["text"]), found.before)
        parts["reply"] = weights.reply * np.where(heard > 0, heard * _brevity(found), heard)
    return Weighed(sum(parts.values(), start=np.zeros(len(found.parents))), parts)


def _telling(found: Candidates, behind: float) -> Scores:
    """Return how far each turn stands out among turns by what it tells; others as the best do.

    A memory that is only a question tells nothing, and falls `behind`.
    """
    turns = np.flatnonzero(found.before >= 0)
    out = np.zeros(len(found.forms))
    if len(turns):
        # One more that tells all, so that there is something to compare the others with.
        stands_out = standing_out(np.r_[found.forms[turns, TELLING], DONE].astype(float), ZERO)
        out[:] = stands_out[-1]
        out[turns] = stands_out[:-1]
    out[(found.before < 0) & (found.forms[:, TELLING] == NOTHING)] -= behind
    return out


def _said_before(scores: Scores, before: NDArray[np.intp]) -> Scores:
    """Return how far the turn before each turn stands out; 0 for what is no turn."""
    turns = np.flatnonzero(before >= 0)
    out = np.zeros(len(scores))
    if len(turns):
        is_first = before[turns] == turns
        out[turns] = standing_out(np.where(is_first, scores.min(), scores[before[turns]]))
    return out


def _asked_on(found: Candidates, scores: Scores) -> Scores:
    """Return the scores, to those of short questions added what the turn before them has.

    "My laptop is slow." "What model is it?" "A ThinkPad.": the last answers the first as well.
    """
    is_later = (found.before >= 0) & (found.before != np.arange(len(found.before)))
    is_short = (found.forms[:, ASKS] > 0) & (found.forms[:, CHARS] <= LINE)
    return scores + np.where(is_later & is_short, scores[found.before], 0.0)


def answers(found: Candidates) -> NDArray[np.bool_]:
    """Return which turns follow a short question."""
    before = found.forms[found.before]
    is_later = (found.before >= 0) & (found.before != np.arange(len(found.before)))
    answers: NDArray[np.bool_] = is_later & (before[:, ASKS] > 0) & (before[:, CHARS] < SHORT)
    return answers


def _brevity(found: Candidates) -> Scores:
    """Return how much the words of the turn before each count: of a long one, few are answered."""
    is_first = found.before == np.arange(len(found.before))
    chars = np.where(is_first, SHORT, np.maximum(found.forms[found.before, CHARS], 1))
    brevity: Scores = np.minimum(BREVITY_MAX, np.sqrt(SHORT / chars))
    return brevity


def standing_out(scores: Scores, usual: Usual = UNIT, company: int = COMPANY) -> Scores:
    """Return how many standard deviations each score is above the mean.

    Of three nodes one always stands out. So a small world is looked at in company: as if there
    were that many nodes, and the others scored as is `usual`.
    """
    others = max(0, company - len(scores))
    count = len(scores) + others
    mean = (scores.sum() + others * usual.mean) / count
    # Not `scores @ scores`: BLAS gives that to several threads, which wait for each other.
    squares = float((scores * scores).sum())
    squares += others * (usual.spread**2 + usual.mean**2)
    spread = np.sqrt(max(0.0, squares / count - mean**2))
    return (scores - mean) / spread if spread > TINY else np.zeros(len(scores))


def _share_of_world(scores: Scores, parents: NDArray[np.int64]) -> Scores:
    """Return how far the world each node lives in stands out, by the mean of its best scores.

    Worlds are compared with worlds, not node by node: else the few nodes of a small one would
    stand out from the many of a large one, whatever they say.
    """
    if (parents == parents[0]).all():
        return np.zeros(len(scores))  # One world: it says nothing about who is ahead.
    order = np.lexsort((-scores, parents))
    sorted_parents = parents[order]
    starts = np.flatnonzero(np.r_[True, sorted_parents[1:] != sorted_parents[:-1]])
    sizes = np.diff(np.r_[starts, len(order)])
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    counted = np.where(rank < SHARE_OF, scores[order], 0.0)
    shares = standing_out(np.add.reduceat(counted, starts) / SHARE_OF)
    spread = np.empty(len(scores))
    spread[order] = np.repeat(shares, sizes)
    return spread


def _best_of_worlds(scores: Scores, parents: NDArray[np.int64]) -> list[int]:
    """Return the places of the best nodes, one of each world, best first."""
    best: list[int] = []
    seen: set[int] = set()
    for place in np.argsort(-scores, kind="stable")[:LOOKED_AT].tolist():
        if int(parents[place]) not in seen:
            seen.add(int(parents[place]))
            best.append(place)
        if len(best) == FEEDBACK_FROM:
            break
    return best


def _said_by(found: Candidates, named: Set[str], side: str | None, asker: str) -> Scores:
    """Return 1 for what was said by the one the question speaks of; see `speakers_of`."""
    verdicts = []
    for speaker in found.speakers:
        # What nobody is named for, the one who asks has told us.
        is_asker = speaker in ("", asker.casefold())
        meant = side is not None and is_asker != side.startswith("not ")
        verdicts.append(float(meant or (speaker != "" and speaker in named)))
    return np.array(verdicts)[found.spoken] if any(verdicts) else np.zeros(len(found.spoken))


def _dated(starts: NDArray[np.int64], question: str, asked_at: datetime) -> Scores:
    """Return how near each node's beginning is to the days the question speaks of, 0 to 1."""
    days = starts // DAY_MICROS
    first, last = (from_micros(int(day) * DAY_MICROS).year for day in (days.min(), days.max()))
    years = range(first, min(last, first + YEARS_MAX) + 1)
    closeness = np.zeros(len(starts))
    epoch = from_micros(0).date().toordinal()
    for span in spans_of(question, asked_at.date(), years):
        before = (span.first.toordinal() - epoch) - days
        after = days - (span.last.toordinal() - epoch)
        off = np.maximum(np.maximum(before, after), 0) / span.tolerance_days
        worth = RELATIVE if span.is_relative else 1.0
        closeness = np.maximum(closeness, worth * np.exp(-0.5 * off**2))
    return closeness


# Retaining: how well each candidate of a recall is kept, where the question wants it weighed.


ROWS_AT_ONCE = 1_000


def with_retention(
    found: Candidates, reader: Reader, rows: Sequence[int], moment: Moment, weights: Weights | None
) -> Candidates:
    """Return the candidates with how well each is kept; as they are if that has no weight."""
    if weights is None or not weights.retention:
        return found
    now = to_micros(moment.now, "now")
    kept: dict[int, float] = {}
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for item in reader.sweep.recalls(rows[start : start + ROWS_AT_ONCE]):
            kept[item.row] = retention(
                item.created_at, item.last, item.recalls, item.links, now, weights.fading
            )
    return replace(found, retained=np.array([kept[row] for row in rows]))
