"""Configured: from plain settings, such as a face reads from its environment, to a chat client."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from worlddb.bridge.chat import Chat, ChatSettings
from worlddb.errors import InvalidInputError

PROVIDERS: dict[str, tuple[Literal["openai", "anthropic"], str]] = {
    "openai": ("openai", "https://api.openai.com/v1"),
    "anthropic": ("anthropic", "https://api.anthropic.com/v1"),
    "ollama": ("openai", "http://localhost:11434/v1"),
    "vllm": ("openai", "http://localhost:8000/v1"),
    "llamacpp": ("openai", "http://localhost:8080/v1"),
}
"""Providers by name: the dialect each speaks, and where it is unless something else is said."""
_ADDRESS = re.compile(r"@(?=https?://)")


class ModelName(NamedTuple):
    """A model as somebody names it; without a `base_url` it is where its provider is."""

    provider: str
    model: str
    base_url: str | None

    @property
    def address(self) -> str | None:
        """Where it is asked; None if nobody knows the provider."""
        usual = PROVIDERS.get(self.provider.casefold())
        return self.base_url or (usual and usual[1])


def model_named(spec: str) -> ModelName:
    """Return what `provider:model` or `provider:model@base_url` means.

    Whatever follows an `@` has to be an address: taken for a part of the model's name, a mistyped
    one would send everything to the provider's own.

    Raises:
        InvalidInputError: it is neither.
    """
    provider, _, rest = spec.partition(":")
    found = _ADDRESS.search(rest)
    model, base_url = (rest[: found.start()], rest[found.end() :]) if found else (rest, None)
    if not provider or not model:
        raise InvalidInputError(
            f"model {spec!r:.80}: give provider:model or provider:model@base_url"
        )
    if "@" in model and base_url is None:
        raise InvalidInputError(
            f"model {spec!r:.80}: what follows the @ is no address; give one that begins with "
            "http:// or https://, also where the model's own name has an @"
        )
    return ModelName(provider, model, base_url)


def chat_from(
    provider: str,
    base_url: str | None = None,
    model: str | None = None,
    api_key: str | None = None,
    **settings: Any,
) -> Chat:
    """Return a client for a provider by its name; `settings` are further ones of `ChatSettings`.

    Any other server with `/chat/completions` is provider "openai" with its own `base_url`.

    Raises:
        InvalidInputError: no such provider, no model, or a setting is wrong.
    """
    if not isinstance(provider, str) or provider.casefold() not in PROVIDERS:
        raise InvalidInputError(
            f"provider {provider!r:.100}: use one of {', '.join(PROVIDERS)}; any other server that "
            "has /chat/completions is 'openai' with its base_url"
        )
    if not model:
        raise InvalidInputError(f"provider {provider}: give the model's name as well")
    if "http://" in model or "https://" in model:
        raise InvalidInputError(
            f"model {model!r:.100}: is or has an address; give that as the base URL"
        )
    dialect, usual = PROVIDERS[provider.casefold()]
    return Chat(
        ChatSettings(
            provider=dialect,
            base_url=base_url or usual,
            model=model,
            api_key=api_key or None,
            **settings,
        )
    )
