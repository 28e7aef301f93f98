"""Chat dialects: how a request is written for an endpoint, and its response read.

    ChatRequest ──body()──▶ JSON to post        JSON received ──reply()──▶ Reply

There are two: OpenAI's `/chat/completions`, which Ollama, vLLM and llama.cpp accept as well, and
Anthropic's `/messages`. Both are pure functions of data, without network access.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ANSWER = "answer"  # The name of the schema, or of the tool, that a structured reply fills in.
ANTHROPIC_VERSION = "2023-06-01"
JsonSchema = Mapping[str, Any]
ChatMessages = Sequence[Mapping[str, str]]
"""A conversation: mappings with a `role` (system, user, assistant) and a `content`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a model. `is_cut`: the token limit was reached, so the end is missing."""

    text: str
    is_cut: bool = False
    input_tokens: int = 0
    output_tokens: int = 0


class NoTextError(ValueError):
    """A model replied without text, or refused; `reply` has the token counts."""

    def __init__(self, reason: str, reply: Reply) -> None:
        super().__init__(reason)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request before it is written in a dialect; `left_out` names unsupported parts."""

    model: str
    messages: ChatMessages
    schema: JsonSchema | None
    max_output_tokens: int
    temperature: float | None
    left_out: frozenset[str] = frozenset()

    @property
    def structure(self) -> JsonSchema | None:
        """The schema of the reply, unless the endpoint does not support schemas."""
        return None if "schema" in self.left_out else self.schema


class OpenAi:
    """OpenAI's `/chat/completions`."""

    path = "/chat/completions"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers that identify the caller."""
        return {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """Return the request as JSON data."""
        limit = "max_completion_tokens" if "max_tokens" in request.left_out else "max_tokens"
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [dict(message) for message in request.messages],
            limit: request.max_output_tokens,
        }
        if request.temperature is not None and "temperature" not in request.left_out:
            body["temperature"] = request.temperature
        if request.structure is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": ANSWER, "strict": True, "schema": request.structure},
            }
        return body

    def reply(self, response: Any) -> Reply:
        """Return the reply in a response.

        Raises:
            ValueError, TypeError, KeyError, IndexError, AttributeError: it has another format.
        """
        choice = response["choices"][0]
        message = choice["message"]
        text = message.get("content")
        if isinstance(text, list):
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        used = response.get("usage") or {}
        reply = Reply(
            text="" if text is None else _text(text),
            is_cut=choice.get("finish_reason") == "length",
            input_tokens=_count(used.get("prompt_tokens")),
            output_tokens=_count(used.get("completion_tokens")),
        )
        refused = not text and message.get("refusal")
        return _with_text(reply, f"the model refused: {refused}" if refused else "")

    def unsupported(self, reason: str) -> str | None:
        """Return which optional part of a request an error message names; None if it names none.

        The parts are `temperature`, `schema` and `max_tokens`.
        """
        words = reason.casefold()
        if "max_completion_tokens" in words:
            return "max_tokens"
        if "temperature" in words:
            return "temperature"
        if any(name in words for name in ("response_format", "json_schema", "schema", "grammar")):
            return "schema"
        return None


class Anthropic:
    """Anthropic's `/messages`. A structured reply is the input of a tool that it has to call."""

    path = "/messages"

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers that identify the caller."""
        key = {"x-api-key": api_key} if api_key else {}
        return {"anthropic-version": ANTHROPIC_VERSION, **key}

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """Return the request as JSON data."""
        system = [each["content"] for each in request.messages if each["role"] == "system"]
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "messages": [dict(each) for each in request.messages if each["role"] != "system"],
        }
        if system:
            body["system"] = "\n\n".join(system)
        if request.temperature is not None and "temperature" not in request.left_out:
            body["temperature"] = request.temperature
        if request.structure is not None:
            description = "Give the answer in this form."
            tool = {"name": ANSWER, "description": description, "input_schema": request.structure}
            body["tools"] = [tool]
            body["tool_choice"] = {"type": "tool", "name": ANSWER}
        return body

    def reply(self, response: Any) -> Reply:
        """Return the reply in a response; raises as `OpenAi.reply` does."""
        blocks = response["content"]
        given = [block["input"] for block in blocks if block.get("type") == "tool_use"]
        words = [block["text"] for block in blocks if block.get("type") == "text"]
        text = json.dumps(given[0], ensure_ascii=False) if given else "".join(words)
        used = response.get("usage") or {}
        cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
        reply = Reply(
            text=_text(text),
            is_cut=response.get("stop_reason") in ("max_tokens", "model_context_window_exceeded"),
            input_tokens=sum(_count(used.get(name)) for name in ("input_tokens", *cached)),
            output_tokens=_count(used.get("output_tokens")),
        )
        refused = not text and response.get("stop_reason") == "refusal"
        return _with_text(reply, "the model refused" if refused else "")

    def unsupported(self, reason: str) -> str | None:
        """Return which optional part of a request an error message names."""
        words = reason.casefold()
        if "temperature" in words:
            return "temperature"
        return "schema" if "tool" in words or "schema" in words else None


DIALECTS: dict[str, OpenAi | Anthropic] = {"openai": OpenAi(), "anthropic": Anthropic()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the text is {type(value).__name__}")
    return value


def _with_text(reply: Reply, refusal: str) -> Reply:
    """Return the reply."""
    if not reply.text.strip():
        raise NoTextError(refusal or "the text is empty", reply)
    return reply


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
