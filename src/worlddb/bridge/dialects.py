"""Dialects: how a conversation is written for an endpoint, and its answer read.

    messages, settings ──body()──▶ what is posted      the answer ──reply()──▶ Reply

Two are spoken: OpenAI's `/chat/completions`, which Ollama, vLLM and llama.cpp speak as well, and
Anthropic's `/messages`. Neither knows the network; both are functions of data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

ANSWER = "answer"
"""The name under which a structured answer is asked for."""
ANTHROPIC_VERSION = "2023-06-01"
JsonSchema = Mapping[str, Any]
ChatMessages = Sequence[Mapping[str, str]]
"""What was said: mappings with a `role` (system, user, assistant) and a `content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered. `is_cut` if it ran into its limit, so that the end is missing."""

    text: str
    is_cut: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


class NoTextError(ValueError):
    """A model answered with nothing, or refused to; `reply` is what else is known of it."""

    def __init__(self, why: str, reply: Reply) -> None:
        super().__init__(why)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of a model, in no dialect yet; `left_out` is what the endpoint refuses."""

    model: str
    messages: ChatMessages
    schema: JsonSchema | None
    max_output_tokens: int
    temperature: float | None
    left_out: frozenset[str] = frozenset()

    @property
    def structure(self) -> JsonSchema | None:
        """The schema of the answer, if the endpoint is to be told."""
        return None if "schema" in self.left_out else self.schema


class Dialect(Protocol):
    """One way to speak with an endpoint."""

    path: str

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return what identifies the caller."""

    def body(self, asked: Asked) -> dict[str, Any]:
        """Return what is posted."""

    def reply(self, answer: Any) -> Reply:
        """Return what the endpoint answered.

        Raises:
            ValueError, TypeError, KeyError, IndexError, AttributeError: it is no such answer.
        """

    def unsupported(self, reason: str) -> str | None:
        """Return what a refusal says the endpoint does not take, if it is something to leave out.

        One of `temperature`, `schema`, `max_tokens`.
        """


class OpenAi:
    """OpenAI's `/chat/completions`."""

    path = "/chat/completions"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return what identifies the caller."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def body(self, asked: Asked) -> dict[str, Any]:
        """Return what is posted."""
        limit = "max_completion_tokens" if "max_tokens" in asked.left_out else "max_tokens"
        body: dict[str, Any] = {
            "model": asked.model,
            "messages": [dict(message) for message in asked.messages],
            limit: asked.max_output_tokens,
        }
        if asked.temperature is not None and "temperature" not in asked.left_out:
            body["temperature"] = asked.temperature
        if asked.structure is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": ANSWER, "strict": True, "schema": asked.structure},
            }
        return body

    def reply(self, answer: Any) -> Reply:
        """Return what the endpoint answered.

        Raises:
            ValueError, TypeError, KeyError, IndexError, AttributeError: it is no such answer.
        """
        choice = answer["choices"][0]
        said = choice["message"]
        text = said.get("content")
        if isinstance(text, list):
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        used = answer.get("usage") or {}
        reply = Reply(
            text="" if text is None else _text(text),
            is_cut=choice.get("finish_reason") == "length",
            input_tokens=_count(used.get("prompt_tokens")),
            output_tokens=_count(used.get("completion_tokens")),
        )
        refused = not text and said.get("refusal")
        return _said(reply, f"the model refused: {refused}" if refused else "")

    def unsupported(self, reason: str) -> str | None:
        """Return what a refusal says the endpoint does not take."""
        said = reason.casefold()
        if "max_completion_tokens" in said:
            return "max_tokens"
        if "temperature" in said:
            return "temperature"
        if any(word in said for word in ("response_format", "json_schema", "schema", "grammar")):
            return "schema"
        return None


class Anthropic:
    """Anthropic's `/messages`. A structured answer is the input of a tool it is made to use."""

    path = "/messages"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return what identifies the caller."""
        key = {"x-api-key": api_key} if api_key else {}
        return {"anthropic-version": ANTHROPIC_VERSION, **key}

    def body(self, asked: Asked) -> dict[str, Any]:
        """Return what is posted."""
        told = [each["content"] for each in asked.messages if each["role"] == "system"]
        body: dict[str, Any] = {
            "model": asked.model,
            "max_tokens": asked.max_output_tokens,
            "messages": [dict(each) for each in asked.messages if each["role"] != "system"],
        }
        if told:
            body["system"] = "\n\n".join(told)
        if asked.temperature is not None and "temperature" not in asked.left_out:
            body["temperature"] = asked.temperature
        if asked.structure is not None:
            about = "Give the answer in this form."
            tool = {"name": ANSWER, "description": about, "input_schema": asked.structure}
            body["tools"] = [tool]
            body["tool_choice"] = {"type": "tool", "name": ANSWER}
        return body

    def reply(self, answer: Any) -> Reply:
        """Return what the endpoint answered.

        Raises:
            ValueError, TypeError, KeyError, IndexError, AttributeError: it is no such answer.
        """
        blocks = answer["content"]
        given = [block["input"] for block in blocks if block.get("type") == "tool_use"]
        words = [block["text"] for block in blocks if block.get("type") == "text"]
        text = json.dumps(given[0], ensure_ascii=False) if given else "".join(words)
        used = answer.get("usage") or {}
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        reply = Reply(
            text=_text(text),
            is_cut=answer.get("stop_reason") in ("max_tokens", "model_context_window_exceeded"),
            input_tokens=sum(_count(used.get(name)) for name in ("input_tokens", *cached)),
            output_tokens=_count(used.get("output_tokens")),
        )
        refused = not text and answer.get("stop_reason") == "refusal"
        return _said(reply, "the model refused" if refused else "")

    def unsupported(self, reason: str) -> str | None:
        """Return what a refusal says the endpoint does not take."""
        said = reason.casefold()
        if "temperature" in said:
            return "temperature"
        return "schema" if "tool" in said or "schema" in said else None


DIALECTS: dict[str, Dialect] = {"openai": OpenAi(), "anthropic": Anthropic()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the text is {type(value).__name__}")
    return value


def _said(reply: Reply, refused: str) -> Reply:
    """Return a reply that says something.

    Raises:
        NoTextError: it does not.
    """
    if not reply.text.strip():
        raise NoTextError(refused or "the text is empty", reply)
    return reply


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
