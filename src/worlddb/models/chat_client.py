"""Chat client: a chat model behind an HTTP endpoint.

    Chat(ChatSettings(provider="openai", base_url=…, model=…))(messages) ──▶ text
    chat_from("ollama", model="llama3.2")                                ──▶ Chat

The client limits its rate, retries (`embed.json_client`) and counts tokens. Where an endpoint
refuses an optional part of a request (a temperature, a schema), the client leaves that part out
from then on.

There are two dialects: OpenAI's `/chat/completions`, which Ollama, vLLM and llama.cpp accept as
well, and Anthropic's `/messages`. Both are pure functions of data, without network access:

    ChatRequest ──body()──▶ JSON to post        JSON received ──reply()──▶ Reply
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from worlddb.embed.json_client import (
    REASON_CHARS_MAX,
    CircuitBreaker,
    EndpointRefusedError,
    EndpointUnavailableError,
    JsonClient,
    JsonServer,
    check_model,
    error_message,
)
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.inputs import check_integer

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


STATUSES_UNSUPPORTED = {400, 404, 422}  # What endpoints answer to a parameter they do not know.

ChatFunction: TypeAlias = Callable[[list[dict[str, str]]], str]
"""A caller's own model: takes messages with `role` and `content`, returns the reply's text."""


class EmptyReplyError(ProviderError):
    """The model replied without text; `reply` has the token counts."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """The endpoint, the model, its limits, and how long to keep trying.

    `provider` is the dialect: "openai" for every server with `/chat/completions`, or "anthropic".
    `temperature` None leaves the choice to the model. `structured` asks for JSON by schema where
    JSON is needed. `requests_per_minute` None sets no limit. `rest_s` is how long writes skip an
    endpoint that has failed at every attempt; 0 asks it each time.
    """

    provider: Literal["openai", "anthropic"]
    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    retries_max: int = 4
    backoff_s: float = 0.5
    rest_s: float = 30.0
    requests_per_minute: float | None = None
    requests_at_once_max: int = 4
    max_output_tokens: int = 4096
    temperature: float | None = 0.0
    structured: bool = True

    def __post_init__(self) -> None:
        """Check the values before the first request."""
        if self.provider not in DIALECTS:
            raise InvalidInputError(
                f"provider {self.provider!r:.100}: use one of {', '.join(DIALECTS)}"
            )
        check_model(self.model)
        check_integer(self.retries_max, "retries_max", 0)
        _ = self.server
        check_integer(self.requests_at_once_max, "requests_at_once_max", 1)
        check_integer(self.max_output_tokens, "max_output_tokens", 1)
        if not 0 <= self.rest_s < float("inf"):
            raise InvalidInputError("rest_s: give a number of seconds, or 0")
        if self.requests_per_minute is not None and not self.requests_per_minute > 0:
            raise InvalidInputError("requests_per_minute: give a positive number, or None")

    @property
    def server(self) -> JsonServer:
        """The server as the HTTP client needs it."""
        return JsonServer(
            base_url=self.base_url,
            name=f"{str(self.base_url).rstrip('/')}#{self.model}",
            api_key=self.api_key,
            timeout_s=self.timeout_s,
            retries=self.retries_max,
            backoff_s=self.backoff_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Answered requests so far, and the tokens that the endpoint counted."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class RateLimiter:
    """Limits how many requests run at once and how many start per minute.

    Requests are evenly spaced: a server that allows 60 per minute may still refuse 60 at once.
    """

    def __init__(self, *, per_minute: float | None, at_once_max: int) -> None:
        self._gap_s = 0.0 if per_minute is None else 60.0 / per_minute
        self._slots = threading.BoundedSemaphore(at_once_max)
        self._lock = threading.Lock()
        self._free_at = 0.0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a slot and hold it for the length of the block."""
        with self._slots:
            self._wait()
            yield

    def _wait(self) -> None:
        if not self._gap_s:
            return
        with self._lock:
            starts_at = max(time.monotonic(), self._free_at)
            self._free_at = starts_at + self._gap_s
        while (left := starts_at - time.monotonic()) > 0:
            time.sleep(left)


class Chat:
    """A chat model behind an endpoint. Connects at the first request; safe to share."""

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        self.name = settings.server.name
        self._dialect = DIALECTS[settings.provider]
        self._client = JsonClient(settings.server, self._dialect.headers(settings.api_key))
        self._limiter = RateLimiter(
            per_minute=settings.requests_per_minute, at_once_max=settings.requests_at_once_max
        )
        self._breaker = CircuitBreaker(self.name, settings.rest_s)
        self._lock = threading.Lock()
        self._unsupported: frozenset[str] = (
            frozenset() if settings.structured else frozenset({"schema"})
        )
        self._usage = Usage()

    def __repr__(self) -> str:
        return f"Chat({self.settings!r})"

    def __call__(self, messages: list[dict[str, str]]) -> str:
        """Return the text of the reply."""
        return self.ask(messages).text

    def ask(self, messages: ChatMessages, *, schema: JsonSchema | None = None) -> Reply:
        """Return the reply; as JSON of `schema` where the endpoint has structured output.

        Raises:
            InvalidInputError: a message lacks its role or content.
            ProviderError: the endpoint failed, or its response is not a chat reply.
        """
        _check_messages(messages)
        settings = self.settings
        request = ChatRequest(
            model=settings.model,
            messages=messages,
            schema=schema,
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
            left_out=self._unsupported,
        )
        while True:
            try:
                reply = self._reply(request)
            except EndpointRefusedError as error:
                refused = self._dialect.unsupported(error.reason)
                if error.status not in STATUSES_UNSUPPORTED or refused is None:
                    raise
                if refused in request.left_out:
                    raise
                request = replace(request, left_out=request.left_out | {refused})
            else:
                self._learn(request, reply)
                return reply

    def resting(self) -> str | None:
        """Return why callers that can wait should not ask now; None if they may.

        For `rest_s` seconds after the endpoint has failed at every attempt there is a reason.
        Then one caller gets None and probes the endpoint; the others wait for its result.
        """
        return self._breaker.reason()

    @property
    def usage(self) -> Usage:
        """Requests and tokens of this client so far, over all threads."""
        with self._lock:
            return self._usage

    def _reply(self, request: ChatRequest) -> Reply:
        # Servers fail on a lone surrogate, also when it is escaped in JSON.
        body = json.dumps(self._dialect.body(request), ensure_ascii=False).encode(errors="replace")
        with self._limiter.slot():
            response = self._send(body)
        try:
            return self._dialect.reply(_data(response))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as bad:
            error = self._client.failure(
                f"its response is not a chat reply ({type(bad).__name__}: {bad!s:.200}): "
                f"{response[:REASON_CHARS_MAX].decode(errors='replace')}"
            )
            if isinstance(bad, NoTextError):
                error = EmptyReplyError(str(error), bad.reply)
            raise error from None

    def _send(self, body: bytes) -> bytes:
        try:
            tries = 1 if self._breaker.is_probe else None
            response = self._client.send(self._dialect.path, body, tries=tries)
        except EndpointUnavailableError as error:
            self._breaker.failed(str(error))
            raise
        except EndpointRefusedError:
            self._breaker.answered()
            raise
        self._breaker.answered()
        return response

    def _learn(self, request: ChatRequest, reply: Reply) -> None:
        """Count the tokens, and remember which parts the endpoint does not support."""
        with self._lock:
            self._unsupported |= request.left_out
            self._usage = Usage(
                requests=self._usage.requests + 1,
                input_tokens=self._usage.input_tokens + reply.input_tokens,
                output_tokens=self._usage.output_tokens + reply.output_tokens,
            )


def _data(response: bytes) -> Any:
    """Return a response as data; some servers send an error with status 200."""
    data = json.loads(response)
    if isinstance(data, dict) and data.get("error"):
        raise ValueError(error_message(data["error"]))
    return data


def _check_messages(messages: ChatMessages) -> None:
    if isinstance(messages, str | bytes) or not messages:
        raise InvalidInputError("messages: give a list of mappings with role and content")
    for message in messages:
        role = message.get("role") if hasattr(message, "get") else None
        if role not in ("system", "user", "assistant") or not isinstance(
            message.get("content"), str
        ):
            raise InvalidInputError(
                "messages: each has a role (system, user or assistant) and text as its content, "
                f"not {message!r:.100}"
            )


def ask_text(
    chat: Chat | ChatFunction, messages: list[dict[str, str]], schema: JsonSchema | None = None
) -> Reply:
    """Return the reply of an endpoint or of a caller's own function."""
    if isinstance(chat, Chat):
        return chat.ask(messages, schema=schema)
    try:
        text = chat(messages)
    except ProviderError:
        raise
    except Exception as error:
        # The caller's code may raise anything; here it means that the model gave no reply.
        raise ProviderError(f"the model's function: {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise ProviderError(f"the model's function: returned {type(text).__name__}, not text")
    if not text.strip():
        raise ProviderError("the model's function: returned an empty text")
    return Reply(text=text)


PROVIDERS: dict[str, tuple[Literal["openai", "anthropic"], str]] = {
    "openai": ("openai", "https://api.openai.com/v1"),
    "anthropic": ("anthropic", "https://api.anthropic.com/v1"),
    "ollama": ("openai", "http://localhost:11434/v1"),
    "vllm": ("openai", "http://localhost:8000/v1"),
    "llamacpp": ("openai", "http://localhost:8080/v1"),
}
"""Provider → its dialect and its default base URL."""
_ADDRESS = re.compile(r"@(?=https?://)")


class ModelName(NamedTuple):
    """The parts of `provider:model@base_url`; the address is optional."""

    provider: str
    model: str
    base_url: str | None

    @property
    def address(self) -> str | None:
        """The base URL, given or the provider's default; None for an unknown provider."""
        known = PROVIDERS.get(self.provider.casefold())
        return self.base_url or (known and known[1])


def parse_model_name(spec: str) -> ModelName:
    """Return the parts of `provider:model` or `provider:model@base_url`.

    An `@` must be followed by an address. Otherwise a mistyped address would become part of the
    model's name, and every text would go to the provider's own server.
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
            f"model {spec!r:.80}: what follows the @ is not an address; it must begin with http:// "
            "or https://, also where the model's own name has an @"
        )
    return ModelName(provider, model, base_url)


def chat_from(
    provider: str,
    base_url: str | None = None,
    model: str | None = None,
    api_key: str | None = None,
    **settings: Any,
) -> Chat:
    """Return a chat client by the name of its provider.

    `settings` are further fields of `ChatSettings`. Any other server with `/chat/completions` is
    provider "openai" with its own `base_url`.

    Raises:
        InvalidInputError: no such provider, no model, or a setting is wrong.
    """
    if not isinstance(provider, str) or provider.casefold() not in PROVIDERS:
        raise InvalidInputError(
            f"provider {provider!r:.100}: use one of {', '.join(PROVIDERS)}; any other server with "
            "/chat/completions is 'openai' with its base_url"
        )
    if not model:
        raise InvalidInputError(f"provider {provider}: give the model's name as well")
    if "http://" in model or "https://" in model:
        raise InvalidInputError(
            f"model {model!r:.100}: contains an address; give the address as base URL"
        )
    dialect, default_url = PROVIDERS[provider.casefold()]
    return Chat(
        ChatSettings(
            provider=dialect,
            base_url=base_url or default_url,
            model=model,
            api_key=api_key or None,
            **settings,
        )
    )
