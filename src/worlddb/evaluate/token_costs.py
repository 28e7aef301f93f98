"""Token costs: about how many tokens a run will take, and what they cost at given prices.

No model is asked to find out. A token is taken to be four characters. Answers and verdicts are
taken to be as long as they may be, which is a bound. That an extractor writes a third of
what it reads is a guess. How long prompts get is measured (`context_scale`): a few conversations
are written and asked on this machine. An embedder counts if it is an endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from worlddb import WorldDB
from worlddb.errors import InvalidInputError
from worlddb.evaluate.benchmark_cases import tokens_of
from worlddb.evaluate.benchmark_settings import RunSettings
from worlddb.evaluate.case_recall import write_case
from worlddb.evaluate.data_sets import load_cases
from worlddb.evaluate.model_answers import Roles, found_for, memories_of
from worlddb.evaluate.question_plan import PlannedQuestion, works_of

ROLES = ("extractor", "answerer", "judge", "embedder")
EXTRACTED_SHARE = 1 / 3  # a guess: what an extractor writes, as a share of what it reads
LINE_TOKENS = 8  # about what a message takes in a prompt beside its text: when it was said
QUESTION_TOKENS = 20  # about the mean of the three data sets
ANSWER_TOKENS = 25  # about what an answer takes that was asked for as short as it can be
PER = 1_000_000  # prices are for a million tokens, as providers give them
QUICK = ("none", "hash")
"""Embedders that cost nothing; for the estimate, any other is replaced by the default."""
CONVERSATIONS = 8  # enough to know prompts within a fifth, few enough to take seconds
QUESTIONS_OF_EACH = 4

Prices = Mapping[str, tuple[float, float]]


class Estimate(NamedTuple):
    """About what a role will take. `price` is in the currency of the prices; None without one."""

    role: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    price: float | None

    @property
    def is_bound(self) -> bool:
        """Whether the role will write no more tokens than these."""
        return self.role != "extractor"


def context_tokens(one: PlannedQuestion, settings: RunSettings) -> int:
    """Return what the memories for a question take if those found are as long as all others."""
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
    """Return what each role of a run will take, if nothing was asked before.

    `scale` is how much longer or shorter memories are than the mean of all turns.
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
    """Return what tokens cost in a role; None if its prices were not given."""
    if role not in prices:
        return None
    each_in, each_out = prices[role]
    return (tokens_in * each_in + tokens_out * each_out) / PER


def read_prices(given: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return prices for a million tokens, each given as `role=in,out`.

    Raises:
        InvalidInputError: one of them is something else.
    """
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
    """Return how many times as long prompts are as the mean length of all turns suggests.

    Recall may prefer long or short turns, so a few questions are asked before anything is paid
    for. Nothing leaves this machine, and it has to be quick: an embedder behind an address, or a
    slow one, is replaced by the default, and turns stand for what a model would read in them.
    """
    local = replace(
        settings,
        reading="verbatim" if settings.reading == "model" else settings.reading,
        embedder=settings.embedder if settings.embedder in QUICK else None,
    )
    numbers = list(dict.fromkeys(one.case for one in left))
    # From all over the file, which may be sorted by category.
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
                found = found_for(db, work.case, work.case.questions[place], local)
                hits = [(hit, stored.places.get(hit.node.id, [])) for hit in found]
                taken += tokens_of(memories_of(work.case, hits))
                expected += context_tokens(chosen[work.number, place], local)
    return taken / expected if expected else 1.0
