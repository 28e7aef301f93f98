"""Agreeing: what an evaluation will take, told before it begins, and somebody's yes to it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError

if TYPE_CHECKING:
    from worlddb.evaluate.benchmark_settings import RunSettings
    from worlddb.evaluate.model_answers import Roles
    from worlddb.evaluate.question_plan import PlannedQuestion

    Rest = tuple[RunSettings, Roles | None, Sequence[PlannedQuestion]]
    """A run, its models, and the questions it has still to ask."""


def paid(args: argparse.Namespace, roles: Roles | None) -> dict[str, str]:
    """Return what the models took so far, for the report."""
    if roles is None:
        return {}
    from worlddb.evaluate.token_costs import price_of, read_prices

    prices = read_prices(args.price)
    told = {}
    for role, (tokens_in, tokens_out) in sorted(roles.calls.total.tokens.items()):
        price = price_of(role, tokens_in, tokens_out, prices)
        cost = "" if price is None else f", cost {price:,.2f}"
        told[f"{role}, all calls"] = f"{tokens_in:,} tokens in, {tokens_out:,} out{cost}"
    return told


def agreed(args: argparse.Namespace, runs: Sequence[Rest]) -> bool:
    """Say what the rest of some runs will take, and ask somebody at the terminal whether it may.

    Raises:
        InvalidInputError: nobody is there to ask, and --yes was not given.
    """
    from worlddb.evaluate.token_costs import read_prices

    told = _taking(args.data, runs, read_prices(args.price))
    for line in told:
        sys.stderr.write(f"{line}\n")
    # Only what leaves this machine has a line, and whoever has one is asked.
    if args.yes or not told:
        return True
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise InvalidInputError("this asks models: give --yes where nobody can be asked")
    sys.stderr.write("ask them? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _taking(
    data: str,
    runs: Sequence[Rest],
    prices: Mapping[str, tuple[float, float]],
) -> list[str]:
    """Return a line for each model: what it will be asked, and what that costs."""
    from worlddb.evaluate.model_answers import READING_SPLITS_MAX
    from worlddb.evaluate.token_costs import context_scale, estimates

    told: dict[tuple[str, str], list[float]] = {}
    guessed: set[str] = set()
    for settings, roles, left in runs:
        scale = context_scale(data, settings, left) if roles is not None and left else 1.0
        for one in estimates(left, settings, roles, prices, scale=scale) if left else ():
            guessed.update({one.role} if not one.is_bound else ())
            parts = [one.requests, one.input_tokens, one.output_tokens, one.price or 0.0]
            before = told.setdefault((one.role, one.model), [0.0] * 4)
            # What a model has read once is read for every row of a table.
            pairs = zip(before, parts, strict=True)
            told[one.role, one.model] = [
                max(pair) if one.role == "extractor" else sum(pair) for pair in pairs
            ]
    lines = []
    for (role, name), (requests, tokens_in, tokens_out, price) in told.items():
        cost = f", cost {price:,.2f}" if role in prices else ", no price given"
        lines.append(
            f"{role} {name}: about {requests:,.0f} requests, {tokens_in:,.0f} tokens in, "
            f"{'about' if role in guessed else 'at most'} {tokens_out:,.0f} out{cost}"
        )
    if guessed:
        more = 2 * READING_SPLITS_MAX
        lines.append(f"extractor: a session whose reading is cut takes up to {more} requests more")
    if kept := _kept(runs):
        lines.append(f"replies from before are kept, and not paid for again: {kept}")
    if len(told) > 1 and all(role in prices for role, _ in told):
        lines.append(f"all together: cost {sum(parts[3] for parts in told.values()):,.2f}")
    return lines


def _kept(runs: Sequence[Rest]) -> str:
    """Return how many replies of each role there are already."""
    counts = {
        role: count
        for _, roles, left in runs
        if roles is not None and left
        for role, count in roles.calls.kept.items()
    }
    return ", ".join(f"{role} {count:,}" for role, count in counts.items())
