"""Models of an evaluation: which model plays each role, with which key, and what that will cost.

    --answerer anthropic:claude-x     --judge openai:m@http://localhost:8000/v1     --judge none

A key goes to no address that it was not given for. Before a run asks models, it says what that
will take, and somebody has to agree.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import agreed_at_terminal

if TYPE_CHECKING:
    from worlddb import ChatSettings
    from worlddb.evaluate.benchmark_cases import RunSettings
    from worlddb.evaluate.model_answers import Roles
    from worlddb.evaluate.question_plan import PlannedQuestion
    from worlddb.evaluate.run_folder import Calls
    from worlddb.faces.face_settings import Settings
    from worlddb.models.chat_client import ModelName

    Rest = tuple[RunSettings, Roles | None, Sequence[PlannedQuestion]]
    """A run, its models, and the questions it has still to ask."""

NONE = "none"
ROLES = ("answerer", "judge", "extractor")
WITHOUT_MODEL = ("verbatim", "rules")
PROVIDER_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
WORKERS_MAX = 64  # connections to one endpoint; more are refused by most


def reading_of(args: argparse.Namespace, usual: str) -> str:
    """Return what reads conversations: rules, nothing, or a model; `usual` is the set's own."""
    if args.reader in WITHOUT_MODEL:
        return str(args.reader)
    if args.reader == NONE:
        return "verbatim"
    if args.mode == "retrieval":
        if args.reader is not None:
            raise InvalidInputError("--extractor: a model reads only with --mode qa or both")
        return usual
    return "model" if args.reader is not None or _is_configured(args) else "rules"


def model_settings(args: argparse.Namespace, reading: str) -> dict[str, dict[str, Any]]:
    """Return the settings of a run that concern its models: name, address and limit of each."""
    chats = {role: _chat_settings(args, role, spec) for role, spec in _specs(args, reading).items()}
    return {
        "roles": {role: f"{one.provider}:{one.model}" for role, one in chats.items()},
        # Settings of a chat refuse an address with a password in it.
        "addresses": {role: one.base_url.rstrip("/") for role, one in chats.items()},
        "limits": {role: one.max_output_tokens for role, one in chats.items()},
    }


def model_of(spec: str) -> tuple[str, str]:
    """Return the name and the address of a model from `provider:model[@base_url]`."""
    from worlddb.models.chat_client import parse_model_name

    named = parse_model_name(spec)
    return f"{named.provider}:{named.model}", (named.address or "").rstrip("/")


def options_of_row(
    args: argparse.Namespace, base: RunSettings, settings: RunSettings
) -> argparse.Namespace:
    """Return the options of one row of an ablation, whose models a knob may have changed.

    A model of the same name as in the first row is asked where that one is.
    """
    changed = {}
    for text in args.knob:
        role, _, values = text.partition("=")
        for spec in map(str.strip, values.split(",")) if role in ROLES else ():
            if base.roles.get(role) != model_of(spec)[0] == settings.roles.get(role):
                changed["reader" if role == "extractor" else role] = spec
    return argparse.Namespace(**{**vars(args), **changed})


def make_roles(
    args: argparse.Namespace, settings: RunSettings, calls: Calls | None
) -> Roles | None:
    """Return the models of a run, whose replies go to `calls`; None if it asks none."""
    if calls is None:
        return None
    from worlddb.evaluate.model_answers import Roles, load_prompts
    from worlddb.evaluate.run_folder import KeptChat

    chats: dict[str, Any] = {
        role: KeptChat(_chat_settings(args, role, spec), role, calls)
        for role, spec in _specs(args, settings.reading).items()
    }
    return Roles(prompts=load_prompts(args.prompts), calls=calls, **chats)


def _specs(args: argparse.Namespace, reading: str) -> dict[str, str | None]:
    """Return the roles that take part, each with what was said of its model."""
    if args.answerer is None and not _is_configured(args):
        raise InvalidInputError(
            "no model answers: give --answerer provider:model, or set WORLDDB_LLM_PROVIDER and "
            "WORLDDB_LLM_MODEL"
        )
    specs: dict[str, str | None] = {"answerer": args.answerer}
    if args.judge != NONE and (args.judge is not None or _is_configured(args)):
        specs["judge"] = args.judge
    if reading == "model":
        specs["extractor"] = args.reader
    return specs


def _is_configured(args: argparse.Namespace) -> bool:
    from worlddb.faces.face_settings import settings_from

    told = settings_from(args)
    return bool(told.llm_provider and told.llm_model)


def _chat_settings(args: argparse.Namespace, role: str, spec: str | None) -> ChatSettings:
    """Return how to reach the model of a role."""
    from worlddb import chat_from
    from worlddb.faces.face_settings import chat_of, settings_from

    told = settings_from(args)
    longest = {
        "answerer": args.answer_tokens,
        "judge": args.judge_tokens,
        "extractor": args.extract_tokens,
    }
    more: dict[str, Any] = {
        "max_output_tokens": longest[role],
        "requests_per_minute": args.per_minute,
        "requests_at_once_max": min(args.workers or 4, WORKERS_MAX),
    }
    if spec is None:
        return replace(chat_of(told).settings, **more)
    named = _named(role, spec)
    key = _key(role, named.provider.casefold(), named.base_url, told)
    return chat_from(named.provider, named.base_url, named.model, key, **more).settings


def _named(role: str, spec: str) -> ModelName:
    from worlddb.models.chat_client import parse_model_name

    try:
        return parse_model_name(spec)
    except InvalidInputError as error:
        raise InvalidInputError(f"--{role}: {error}") from None


def _key(role: str, provider: str, base_url: str | None, told: Settings) -> str | None:
    """Return the key for a model that was named: its role's own, or that of the same address."""
    own = os.environ.get(f"WORLDDB_{role.upper()}_KEY")
    if own:
        return own
    if provider == (told.llm_provider or "").casefold() and base_url == told.llm_base_url:
        return told.llm_api_key
    if base_url is None:
        return os.environ.get(PROVIDER_KEYS.get(provider, "")) or None
    return None


# What a run costs.


def paid(args: argparse.Namespace, roles: Roles | None) -> dict[str, str]:
    """Return what the models took so far, for the report."""
    if roles is None:
        return {}
    from worlddb.evaluate.question_plan import price_of, read_prices

    prices = read_prices(args.price)
    told = {}
    for role, (tokens_in, tokens_out) in sorted(roles.calls.total.tokens.items()):
        price = price_of(role, tokens_in, tokens_out, prices)
        cost = "" if price is None else f", cost {price:,.2f}"
        told[f"{role}, all calls"] = f"{tokens_in:,} tokens in, {tokens_out:,} out{cost}"
    return told


def agreed(args: argparse.Namespace, runs: Sequence[Rest]) -> bool:
    """Say what the rest of some runs will take, and ask at the terminal whether it may.

    Raises:
        InvalidInputError: nobody is there to ask, and --yes was not given.
    """
    told = _cost_lines(args, runs)
    for line in told:
        sys.stderr.write(f"{line}\n")
    # Only what leaves this machine has a line, and needs a yes.
    if args.yes or not told:
        return True
    agrees = agreed_at_terminal("ask them")
    if agrees is None:
        raise InvalidInputError(
            "this run asks models: give --yes if there is no terminal to confirm at"
        )
    return agrees


def _cost_lines(args: argparse.Namespace, runs: Sequence[Rest]) -> list[str]:
    """Return a line for each model: what it will be asked, and what that costs."""
    from worlddb.evaluate.model_answers import READING_SPLITS_MAX
    from worlddb.evaluate.question_plan import context_scale, estimates, read_prices

    prices = read_prices(args.price)
    told: dict[tuple[str, str], list[float]] = {}
    guessed: set[str] = set()
    for settings, roles, left in runs:
        if not left:
            continue
        scale = context_scale(args.data, settings, left) if roles is not None else 1.0
        for one in estimates(left, settings, roles, prices, scale=scale):
            guessed.update({one.role} if not one.is_bound else ())
            parts = [one.requests, one.input_tokens, one.output_tokens, one.price or 0.0]
            before = told.setdefault((one.role, one.model), [0.0] * 4)
            # What a model has read once is read for every row of a table.
            joined = max if one.role == "extractor" else sum
            told[one.role, one.model] = [joined(pair) for pair in zip(before, parts, strict=True)]
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
    kept = {
        role: f"{role} {count:,}"
        for _, roles, left in runs
        if roles is not None and left
        for role, count in roles.calls.kept.items()
    }
    if kept:
        told_kept = ", ".join(kept.values())
        lines.append(f"replies from before are kept, and not paid for again: {told_kept}")
    if len(told) > 1 and all(role in prices for role, _ in told):
        lines.append(f"all together: cost {sum(parts[3] for parts in told.values()):,.2f}")
    return lines
