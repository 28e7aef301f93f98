"""Cost: about how many tokens a run will take, and what they cost at given prices.

Nothing is asked to find out. A token is taken to be four characters; answers and verdicts are taken
to be as long as they may be, which is a bound; that an extractor writes a third of what it reads is
a guess. How long prompts get is found by `sampling`. An embedder counts if it is an endpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from worlddb.errors import InvalidInputError
from worlddb.evaluate.answering import Roles
from worlddb.evaluate.plan import Planned
from worlddb.evaluate.settings import RunSettings
from worlddb.recall.hits import tokens_of

ROLES = ("extractor", "answerer", "judge", "embedder")
EXTRACTED_SHARE = 1 / 3
LINE_TOKENS = 8
"""About what a message takes in a prompt beside its text: when it was said."""
QUESTION_TOKENS = 20
ANSWER_TOKENS = 25
"""About what an answer takes that was asked for as short as it can be."""
PER = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a role will take, about. `price` is in the currency of the prices; None without one.

    `is_bound` says that it will write no more tokens than these.
    """

    role: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    price: float | None
    is_bound: bool = True


def is_far(embedder: str | None) -> bool:
    """Return whether an embedder is behind an address, so that texts leave this machine."""
    return embedder is not None and embedder.startswith(("http://", "https://"))


def context_tokens(one: Planned, settings: RunSettings) -> int:
    """Return what the memories for a question take if those found are as long as all others."""
    turns = min(settings.k, one.tokens / max(one.turn_tokens, 1.0))
    given = turns * (one.turn_tokens + LINE_TOKENS)
    return int(min(given, settings.context_tokens or given))


def estimates(
    chosen: Sequence[Planned],
    settings: RunSettings,
    roles: Roles | None,
    prices: Mapping[str, tuple[float, float]],
    *,
    scale: float = 1.0,
) -> list[Estimate]:
    """Return what each role of a run will take, if nothing was asked before.

    `scale` is how much longer or shorter memories are than the mean of all turns.
    """
    cases = {one.case: one for one in chosen}.values()
    found = []
    if settings.embedder is not None and is_far(settings.embedder):
        found.append(_embedding(settings.embedder, cases, len(chosen), prices))
    if roles is None:
        return found
    if roles.extractor is not None and settings.reading == "model":
        sessions = sum(one.sessions for one in cases)
        said = sum(one.tokens for one in cases)
        told = sessions * (tokens_of(roles.prompts.extract) + 10 * LINE_TOKENS)
        written = int(said * EXTRACTED_SHARE)
        found.append(_estimate("extractor", roles, sessions, said + told, written, prices))
    context = int(scale * sum(context_tokens(one, settings) for one in chosen))
    asked = context + len(chosen) * tokens_of(roles.prompts.answer)
    asked += sum(one.asked_tokens for one in chosen)
    longest = roles.answerer.settings.max_output_tokens
    found.append(_estimate("answerer", roles, len(chosen), asked, len(chosen) * longest, prices))
    if roles.judge is not None:
        judged = len(chosen) * (tokens_of(roles.prompts.judge) + ANSWER_TOKENS)
        judged += sum(one.asked_tokens for one in chosen)
        longest = roles.judge.settings.max_output_tokens
        found.append(_estimate("judge", roles, len(chosen), judged, len(chosen) * longest, prices))
    return found


def _embedding(
    name: str, cases: Collection[Planned], questions: int, prices: Mapping[str, tuple[float, float]]
) -> Estimate:
    """Return what it takes to embed conversations, and the questions about them."""
    tokens = sum(one.tokens for one in cases) + questions * QUESTION_TOKENS
    return Estimate(
        role="embedder",
        model=name.partition("#")[2].partition("?")[0],
        requests=len(cases) + questions,
        input_tokens=tokens,
        output_tokens=0,
        price=price_of("embedder", tokens, 0, prices),
    )


def _estimate(
    role: str,
    roles: Roles,
    requests: int,
    tokens_in: int,
    tokens_out: int,
    prices: Mapping[str, tuple[float, float]],
) -> Estimate:
    return Estimate(
        role=role,
        model=getattr(roles, role).settings.model,
        requests=requests,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        price=price_of(role, tokens_in, tokens_out, prices),
        is_bound=role != "extractor",
    )


def price_of(
    role: str, tokens_in: int, tokens_out: int, prices: Mapping[str, tuple[float, float]]
) -> float | None:
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
