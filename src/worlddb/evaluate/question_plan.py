"""Question plan: chooses the questions of a file that a run asks, before the first one is asked.

One pass over the file reads every question and the length of its conversation. With `limit` alone
the pass stops early. `sample` draws questions by a seed, from each category in proportion to its
size, at least one if possible; a larger sample of the same seed includes every smaller one.
`limit` takes the first questions. The plan has the order of the file.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from worlddb import WorldDB
from worlddb.errors import InvalidInputError
from worlddb.evaluate.benchmark_cases import ADVERSARIAL, Case, GoldQuestion, RunSettings, tokens_of
from worlddb.evaluate.case_recall import write_case
from worlddb.evaluate.data_sets import DATA_SETS, load_cases
from worlddb.evaluate.model_answers import Roles, memories_of, recalled_for

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuestion:
    """A question: the index of its conversation in the file, and its own index in that.

    Its estimated tokens: `tokens` of its conversation, `turn_tokens` of one turn of it,
    `asked_tokens` of the question and its reference answer.
    """

    id: str
    case: int
    place: int
    category: str
    tokens: int
    sessions: int
    turn_tokens: float
    asked_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPlan:
    """The questions of a run, and how many there were to choose from.

    `found` is the number of questions in the file that this kind of run can ask; None if the file
    was not read to its end. `left_out` counts the other questions by reason.
    """

    questions: list[PlannedQuestion]
    found: int | None
    left_out: Mapping[str, int] = field(default_factory=dict)
    sample: int | None = None
    limit: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether some questions were, or may have been, left out of the plan."""
        return self.found is None or len(self.questions) < self.found

    @property
    def description(self) -> str:
        """The number and choice of the questions, in words."""
        count, reasons = len(self.questions), _reasons(self.left_out)
        if not self.is_part and not self.left_out:
            return f"all {count} of the file"
        if not self.is_part:
            return f"{count} of the {count + sum(self.left_out.values())} of the file; {reasons}"
        if self.found is None:
            return f"the first {count} of the file, which may have more (--limit {self.limit})"
        if self.sample is None or self.sample >= self.found:
            told = f"the first {count} of the {self.found} of the file (--limit {self.limit})"
        else:
            told = f"a sample of {self.sample} of the {self.found} of the file (--sample)"
            told = told if count == self.sample else f"the first {count} (--limit) of {told}"
        return f"{told}; beside them {reasons}" if self.left_out else told


def _reasons(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in left_out.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWork:
    """A conversation and its questions in the plan."""

    number: int
    case: Case
    wanted: tuple[int, ...]


def plan_of(
    data: str,
    settings: RunSettings,
    *,
    sample: int | None = None,
    limit: int | None = None,
    on_found: Callable[[int], None] = lambda found: None,
) -> QuestionPlan:
    """Return the questions of a file that a run will ask.

    Raises:
        FormatError: it is no such file.
        InvalidInputError: there is nothing to ask in it.
    """
    enough = limit if sample is None else None
    found: list[PlannedQuestion] = []
    left_out: Counter[str] = Counter()
    for number, case in enumerate(load_cases(data, settings.benchmark)):
        found += _planned(number, case, settings)
        left_out.update(filter(None, (why_not(one, settings) for one in case.questions)))
        on_found(len(found))
        if enough is not None and len(found) >= enough:
            break
    if not found:
        count = sum(left_out.values())
        why = f"none of its {count} can be asked: {_reasons(left_out)}" if count else "it is empty"
        raise InvalidInputError(f"{data}: has no question for such a run; {why}")
    return QuestionPlan(
        questions=choose(found, sample=sample, limit=limit, seed=settings.seed),
        found=len(found) if enough is None or len(found) < enough else None,
        left_out=left_out,
        sample=sample,
        limit=limit,
    )


def _planned(number: int, case: Case, settings: RunSettings) -> Iterator[PlannedQuestion]:
    turns = [turn for session in case.sessions for turn in session.turns]
    tokens = sum(tokens_of(turn.speaker) + tokens_of(turn.text) for turn in turns)
    for place, question in enumerate(case.questions):
        if not why_not(question, settings):
            yield PlannedQuestion(
                id=question.id,
                case=number,
                place=place,
                category=question.category,
                tokens=tokens,
                sessions=len(case.sessions),
                turn_tokens=tokens / max(len(turns), 1),
                asked_tokens=tokens_of(question.text) + tokens_of(question.reference),
            )


def why_not(question: GoldQuestion, settings: RunSettings) -> str:
    """Return why a run cannot measure a question; empty if it can measure it."""
    if settings.asks_model:
        is_left = question.category == ADVERSARIAL and not settings.adversarial
        return "adversarial (see --adversarial)" if is_left else ""
    if question.is_measured or not question.has_answer:
        return ""  # For a question without an answer, the confidence is measured.
    if question.gold_missing:
        return "whose gold is not in the file"
    return DATA_SETS[settings.benchmark].without_gold


def choose(
    found: Sequence[PlannedQuestion], *, sample: int | None, limit: int | None, seed: int
) -> list[PlannedQuestion]:
    """Return the questions to ask, in the order of the file."""
    chosen = list(found)
    if sample is not None and sample < len(chosen):
        kept = set(islice(_drawn(chosen, seed), sample))
        chosen = [one for number, one in enumerate(chosen) if number in kept]
    return chosen[:limit]


def _drawn(found: Sequence[PlannedQuestion], seed: int) -> Iterator[int]:
    """Yield the indexes of all questions in the order of sampling.

    First one of each category, the largest first; then always one of the category that is furthest
    below its share. A sample is a prefix of this order, so a larger one includes every smaller one.
    """
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(found):
        groups.setdefault(one.category, []).append(number)
    names = sorted(groups, key=lambda name: (-len(groups[name]), name))
    dice = random.Random(seed)
    for name in names:
        dice.shuffle(groups[name])
    taken = dict.fromkeys(names, 0)
    for count in range(1, len(found) + 1):
        behind = {
            name: len(groups[name]) * count - taken[name] * len(found)
            for name in names
            if taken[name] < len(groups[name])
        }
        name = names[count - 1] if count <= len(names) else max(behind, key=behind.__getitem__)
        yield groups[name][taken[name]]
        taken[name] += 1


def works_of(cases: Iterable[Case], chosen: Iterable[PlannedQuestion]) -> Iterator[CaseWork]:
    """Yield the conversations that have chosen questions, with these."""
    wanted: dict[int, list[int]] = {}
    for one in chosen:
        wanted.setdefault(one.case, []).append(one.place)
    if not wanted:
        return
    last = max(wanted)
    for number, case in enumerate(cases):
        if number in wanted:
            yield CaseWork(number=number, case=case, wanted=tuple(wanted[number]))
        if number == last:
            return


# Token costs: the estimated tokens of a run, and their price.
#
# Estimated without asking a model. A token is taken as four characters. Answers and verdicts are
# taken at their maximum length, which gives an upper bound. The output of an extractor is guessed
# as a third of its input. The length of prompts is measured (`context_scale`) by writing and asking
# a few conversations locally. An embedder counts only if it is an endpoint.

ROLES = ("extractor", "answerer", "judge", "embedder")
EXTRACTED_SHARE = 1 / 3  # a guess: the output of an extractor as a share of its input
LINE_TOKENS = 8  # a message's time and speaker in a prompt
QUESTION_TOKENS = 20  # about the mean of the three data sets
ANSWER_TOKENS = 25  # a short answer, as the prompt asks for
PER = 1_000_000  # prices are for a million tokens, as providers give them
QUICK = ("none", "hash")
"""Embedders that cost nothing; for the estimate, any other is replaced by the default."""
CONVERSATIONS = 8  # estimates prompt lengths within a fifth, in seconds
QUESTIONS_OF_EACH = 4

Prices = Mapping[str, tuple[float, float]]


class Estimate(NamedTuple):
    """The estimated use of a role; `price` is in the currency given, None without prices."""

    role: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    price: float | None

    @property
    def is_bound(self) -> bool:
        """Whether the estimate is an upper bound."""
        return self.role != "extractor"


def context_tokens(one: PlannedQuestion, settings: RunSettings) -> int:
    """Return the tokens of the memories for a question, if hits have the mean length of a turn."""
    turns = min(settings.k, one.tokens / max(one.turn_tokens, 1.0))
    given = turns * (one.turn_tokens + LINE_TOKENS)
    return int(min(given, settings.context_tokens or given))


def estimates(
    chosen: Sequence[PlannedQuestion],
    settings: RunSettings,
    roles: Roles | None,
    prices: Prices,
    *,
    scale: float = 1.0,
) -> list[Estimate]:
    """Return the estimated use of each role, if no reply is in the cache.

    `scale` is the mean length of a hit as a multiple of the mean length of a turn.
    """
    found: list[Estimate] = []

    def add(role: str, model: str, requests: int, tokens_in: int, tokens_out: int) -> None:
        price = price_of(role, tokens_in, tokens_out, prices)
        found.append(Estimate(role, model, requests, tokens_in, tokens_out, price))

    count = len(chosen)
    cases = {one.case: one for one in chosen}.values()
    said = sum(one.tokens for one in cases)
    if settings.embedder is not None and settings.embedder.startswith(("http://", "https://")):
        model = settings.embedder.partition("#")[2].partition("?")[0]
        add("embedder", model, len(cases) + count, said + count * QUESTION_TOKENS, 0)
    if roles is None:
        return found
    if roles.extractor is not None and settings.reading == "model":
        sessions = sum(one.sessions for one in cases)
        told = said + sessions * (tokens_of(roles.prompts.extract) + 10 * LINE_TOKENS)
        model = roles.extractor.settings.model
        add("extractor", model, sessions, told, int(said * EXTRACTED_SHARE))
    asked = sum(one.asked_tokens for one in chosen)
    context = int(scale * sum(context_tokens(one, settings) for one in chosen))
    told = context + asked + count * tokens_of(roles.prompts.answer)
    answerer = roles.answerer.settings
    add("answerer", answerer.model, count, told, count * answerer.max_output_tokens)
    if roles.judge is not None:
        told = asked + count * (tokens_of(roles.prompts.judge) + ANSWER_TOKENS)
        judge = roles.judge.settings
        add("judge", judge.model, count, told, count * judge.max_output_tokens)
    return found


def price_of(role: str, tokens_in: int, tokens_out: int, prices: Prices) -> float | None:
    """Return the price of tokens in a role; None if its prices are unknown."""
    if role not in prices:
        return None
    each_in, each_out = prices[role]
    return (tokens_in * each_in + tokens_out * each_out) / PER


def read_prices(given: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return prices per million tokens from texts `role=in,out`."""
    prices = {}
    for text in given:
        role, _, both = text.partition("=")
        parts = both.split(",") + ["0"] * (role == "embedder" and "," not in both)
        try:
            each_in, each_out = map(float, parts)
        except ValueError:
            each_in = each_out = -1.0
        if role not in ROLES or not (0 <= each_in < PER and 0 <= each_out < PER):
            raise InvalidInputError(
                f"price {text!r:.60}: give role=in,out for a million tokens each, such as "
                f"answerer=5,25 (embedder=in alone); roles are {', '.join(ROLES)}"
            )
        prices[role] = (each_in, each_out)
    return prices


def context_scale(data: str, settings: RunSettings, left: Sequence[PlannedQuestion]) -> float:
    """Return the length of prompts as a multiple of what the mean length of turns suggests.

    Recall may prefer long or short turns, so a few questions are asked locally before anything is
    paid for. To be quick, the default embedder replaces an endpoint or a slow model, and turns
    replace what a model would extract from them.
    """
    local = replace(
        settings,
        reading="verbatim" if settings.reading == "model" else settings.reading,
        embedder=settings.embedder if settings.embedder in QUICK else None,
    )
    numbers = list(dict.fromkeys(one.case for one in left))
    # From the whole file, because it may be sorted by category.
    numbers = numbers[:: max(1, -(-len(numbers) // CONVERSATIONS))]
    chosen = {
        (one.case, one.place): one
        for number in numbers
        for one in islice((one for one in left if one.case == number), QUESTIONS_OF_EACH)
    }
    expected = taken = 0
    for work in works_of(load_cases(data, settings.benchmark), chosen.values()):
        with WorldDB(":memory:", embedder=local.make_embedder(), pooling=local.pooling) as db:
            stored = write_case(db, work.case, local, None)
            for place in work.wanted:
                found = recalled_for(db, work.case, work.case.questions[place], local)
                hits = [(hit, stored.places.get(hit.node.id, [])) for hit in found]
                taken += tokens_of(memories_of(work.case, hits))
                expected += context_tokens(chosen[work.number, place], local)
    return taken / expected if expected else 1.0
