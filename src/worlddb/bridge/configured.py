"""Configured: from plain settings, such as a face reads from its environment, to a chat client."""

from __future__ import annotations

from typing import Any, Literal

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
