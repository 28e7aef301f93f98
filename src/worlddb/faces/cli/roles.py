"""Roles: which models answer, judge and read in an evaluation, and with which keys.

    --answerer anthropic:claude-x     --judge openai:m@http://localhost:8000/v1     --judge none

A key goes to no address that it was not given for.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError

if TYPE_CHECKING:
    from worlddb.bridge.chat import ChatSettings
    from worlddb.bridge.configured import ModelName
    from worlddb.evaluate.benchmark_settings import RunSettings
    from worlddb.evaluate.model_answers import Roles
    from worlddb.evaluate.reply_cache import Calls
    from worlddb.faces.config import Settings

NONE = "none"
ROLES = ("answerer", "judge", "extractor")
WITHOUT_MODEL = ("verbatim", "rules")
PROVIDER_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
WORKERS_MAX = 64


def reading_of(args: argparse.Namespace) -> str:
    """Return what reads conversations: rules, nothing, or a model."""
    if args.reader in WITHOUT_MODEL:
        return str(args.reader)
    if args.reader == NONE:
        return "verbatim"
    if args.mode == "retrieval":
        if args.reader is not None:
            raise InvalidInputError("--extractor: a model reads only with --mode qa or both")
        return "verbatim"
    return "model" if args.reader is not None or _is_configured(args) else "rules"


def told_of(args: argparse.Namespace, reading: str) -> dict[str, dict[str, Any]]:
    """Return what settings say of the roles that take part: name, address and limit of each."""
    chats = {role: _chat_settings(args, role, spec) for role, spec in _specs(args, reading).items()}
    return {
        "roles": {role: f"{one.provider}:{one.model}" for role, one in chats.items()},
        # Settings of a chat refuse an address with a password in it.
        "addresses": {role: one.base_url.rstrip("/") for role, one in chats.items()},
        "limits": {role: one.max_output_tokens for role, one in chats.items()},
    }


def turned(
    args: argparse.Namespace, base: RunSettings, settings: RunSettings
) -> argparse.Namespace:
    """Return the options of one row of a table, whose models a knob may have changed.

    A model of the same name as in the first row is asked where that one is.
    """
    from worlddb.evaluate.ablation import model_name

    changed = {}
    for text in args.knob:
        role, _, values = text.partition("=")
        for spec in map(str.strip, values.split(",")):
            if role in ROLES and base.roles.get(role) != model_name(spec) == settings.roles.get(
                role
            ):
                changed["reader" if role == "extractor" else role] = spec
    return argparse.Namespace(**{**vars(args), **changed})


def make_roles(
    args: argparse.Namespace, settings: RunSettings, calls: Calls | None
) -> Roles | None:
    """Return the models of a run, whose replies go to `calls`; None if it asks none.

    Raises:
        InvalidInputError: nobody answers, or a model is badly named.
    """
    if calls is None:
        return None
    from worlddb.evaluate.model_answers import Roles, load_prompts
    from worlddb.evaluate.reply_cache import KeptChat

    chats: dict[str, Any] = {
        role: KeptChat(_chat_settings(args, role, spec), role, calls)
        for role, spec in _specs(args, settings.reading).items()
    }
    return Roles(prompts=load_prompts(args.prompts), calls=calls, **chats)


def _specs(args: argparse.Namespace, reading: str) -> dict[str, str | None]:
    """Return the roles that take part, each with what was said of its model."""
    if args.answerer is None and not _is_configured(args):
        raise InvalidInputError(
            "nobody answers: give --answerer provider:model, or set WORLDDB_LLM_PROVIDER and "
            "WORLDDB_LLM_MODEL"
        )
    specs: dict[str, str | None] = {"answerer": args.answerer}
    if args.judge != NONE and (args.judge is not None or _is_configured(args)):
        specs["judge"] = args.judge
    if reading == "model":
        specs["extractor"] = args.reader
    return specs


def _is_configured(args: argparse.Namespace) -> bool:
    from worlddb.faces.config import settings_from

    told = settings_from(args)
    return bool(told.llm_provider and told.llm_model)


def _chat_settings(args: argparse.Namespace, role: str, spec: str | None) -> ChatSettings:
    """Return how to reach the model of a role.

    Raises:
        InvalidInputError: it is badly named.
    """
    from worlddb.bridge.configured import chat_from
    from worlddb.faces.config import settings_from
    from worlddb.faces.opening import chat_of

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
        from dataclasses import replace

        return replace(chat_of(told).settings, **more)
    named = _named(role, spec)
    key = _key(role, named.provider.casefold(), named.base_url, told)
    return chat_from(named.provider, named.base_url, named.model, key, **more).settings


def _named(role: str, spec: str) -> ModelName:
    from worlddb.bridge.configured import model_named

    try:
        return model_named(spec)
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
