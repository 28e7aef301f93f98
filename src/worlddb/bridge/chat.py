"""Chat: one small client for language models behind HTTP.

    Chat(ChatSettings(provider="openai", base_url=…, model=…))(messages) ──▶ text

It takes turns (`pace`), speaks the endpoint's dialect (`dialects`), asks patiently (`post`), and
counts tokens. An endpoint that refuses a request because of something it can do without (a
temperature, a schema) is asked without it, from then on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from worlddb.bridge.dialects import DIALECTS, Asked, ChatMessages, JsonSchema, NoTextError, Reply
from worlddb.bridge.pace import Pace
from worlddb.bridge.post import (
    REASON_CHARS_MAX,
    Post,
    RefusedError,
    Server,
    UnavailableError,
    check_server,
)
from worlddb.bridge.post import told_error as _told_error
from worlddb.bridge.rest import Rest
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.inputs import check_whole

REFUSALS = {400, 404, 422}
"""How endpoints say that they do not take a part of a request."""

ChatFunction: TypeAlias = Callable[[list[dict[str, str]]], str]
"""A model of yours: takes messages with `role` and `content`, gives the answer's text."""


class EmptyReplyError(ProviderError):
    """The model answered, but said nothing; `reply` has no text, and what it took."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """Which endpoint and model, what may be asked of it, and how patient to be.

    `provider` is the dialect: "openai" for every server with `/chat/completions`, or "anthropic".
    `temperature` None leaves it to the model; `structured` says whether to ask for JSON by schema,
    where JSON is wanted. `requests_per_minute` None is as fast as it goes. `rest_s` is how long
    writes do without an endpoint that failed at every try; 0 asks it each time.
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
        """Refuse what cannot work before the first request.

        Raises:
            InvalidInputError: one of the values is wrong.
        """
        if self.provider not in DIALECTS:
            raise InvalidInputError(
                f"provider {self.provider!r:.100}: use one of {', '.join(DIALECTS)}"
            )
        check_server(
            self.base_url,
            self.model,
            self.api_key,
            timeout_s=self.timeout_s,
            retries=self.retries_max,
            backoff_s=self.backoff_s,
            retries_name="retries_max",
        )
        check_whole(self.requests_at_once_max, "requests_at_once_max", 1)
        check_whole(self.max_output_tokens, "max_output_tokens", 1)
        if not 0 <= self.rest_s < float("inf"):
            raise InvalidInputError("rest_s: give a number of seconds, or 0")
        if self.requests_per_minute is not None and not self.requests_per_minute > 0:
            raise InvalidInputError("requests_per_minute: give a positive number, or None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was asked so far: requests that were answered, and the tokens the endpoint counted."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Chat:
    """A model behind an endpoint. Connects at the first question; share it between threads."""

    def __init__(self, settings: ChatSettings) -> None:
        self.settings = settings
        self.name = f"{settings.base_url.rstrip('/')}#{settings.model}"
        self._dialect = DIALECTS[settings.provider]
        server = Server(
            base_url=settings.base_url,
            name=self.name,
            api_key=settings.api_key,
            timeout_s=settings.timeout_s,
            retries=settings.retries_max,
            backoff_s=settings.backoff_s,
        )
        self._post = Post(server, self._dialect.headers(settings.api_key))
        self._pace = Pace(
            per_minute=settings.requests_per_minute, at_once_max=settings.requests_at_once_max
        )
        self._rest = Rest(self.name, settings.rest_s)
        self._lock = threading.Lock()
        self._left_out: frozenset[str] = (
            frozenset() if settings.structured else frozenset({"schema"})
        )
        self._usage = Usage()

    def __repr__(self) -> str:
        return f"Chat({self.settings!r})"

    def __call__(self, messages: list[dict[str, str]]) -> str:
        """Return the answer's text.

        Raises:
            ProviderError: the endpoint failed, or answered with something else.
        """
        return self.ask(messages).text

    def ask(self, messages: ChatMessages, *, schema: JsonSchema | None = None) -> Reply:
        """Return the answer; as JSON of `schema`, if the endpoint has structured output.

        Raises:
            InvalidInputError: messages without a role and a content.
            ProviderError: the endpoint failed, or answered with something else.
        """
        _check_messages(messages)
        settings = self.settings
        asked = Asked(
            model=settings.model,
            messages=messages,
            schema=schema,
            max_output_tokens=settings.max_output_tokens,
            temperature=settings.temperature,
            left_out=self._left_out,
        )
        while True:
            try:
                reply = self._reply(asked)
            except RefusedError as error:
                refused = self._dialect.unsupported(error.reason)
                if error.status not in REFUSALS or refused is None or refused in asked.left_out:
                    raise
                asked = replace(asked, left_out=asked.left_out | {refused})
            else:
                self._learn(asked, reply)
                return reply

    def resting(self) -> str | None:
        """Return why whoever can wait should not ask now; None if it may.

        So it is for `rest_s` after the endpoint failed at every try. Then one caller is told None,
        to try for all; the others go on without until it has.
        """
        return self._rest.reason()

    @property
    def usage(self) -> Usage:
        """What this client has asked so far, over all threads."""
        with self._lock:
            return self._usage

    def _reply(self, asked: Asked) -> Reply:
        # A lone surrogate is no text; escaped in JSON, a server would trip over it.
        body = json.dumps(self._dialect.body(asked), ensure_ascii=False).encode(errors="replace")
        with self._pace.turn():
            answer = self._sent(body)
        try:
            return self._dialect.reply(_told(answer))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as bad:
            error = self._post.failure(
                f"its answer is no answer ({type(bad).__name__}: {bad!s:.200}): "
                f"{answer[:REASON_CHARS_MAX].decode(errors='replace')}"
            )
            if isinstance(bad, NoTextError):
                error = EmptyReplyError(str(error), bad.reply)
            raise error from None

    def _sent(self, body: bytes) -> bytes:
        try:
            tries = 1 if self._rest.is_asked_for_all else None
            answer = self._post.send(self._dialect.path, body, tries=tries)
        except UnavailableError as error:
            self._rest.failed(str(error))
            raise
        except RefusedError:
            self._rest.answered()
            raise
        self._rest.answered()
        return answer

    def _learn(self, asked: Asked, reply: Reply) -> None:
        """Count what was used; remember what the endpoint does not take, now that it answered."""
        with self._lock:
            self._left_out |= asked.left_out
            self._usage = Usage(
                requests=self._usage.requests + 1,
                input_tokens=self._usage.input_tokens + reply.input_tokens,
                output_tokens=self._usage.output_tokens + reply.output_tokens,
            )


def _told(answer: bytes) -> Any:
    """Return an answer as data; an error that came with a good status is one all the same."""
    data = json.loads(answer)
    if isinstance(data, dict) and data.get("error"):
        raise ValueError(_told_error(data["error"]))
    return data


def _check_messages(messages: ChatMessages) -> None:
    if isinstance(messages, str | bytes) or not messages:
        raise InvalidInputError("messages: give a list of mappings with role and content")
    for message in messages:
        given = message.get("role") if hasattr(message, "get") else None
        if given not in ("system", "user", "assistant") or not isinstance(
            message.get("content"), str
        ):
            raise InvalidInputError(
                "messages: each has a role (system, user or assistant) and text as its content, "
                f"not {message!r:.100}"
            )


def ask_text(
    chat: Chat | ChatFunction, messages: list[dict[str, str]], schema: JsonSchema | None = None
) -> Reply:
    """Return the answer of an endpoint or of a caller's own function.

    Raises:
        ProviderError: it failed, in whatever way.
    """
    if isinstance(chat, Chat):
        return chat.ask(messages, schema=schema)
    try:
        text = chat(messages)
    except ProviderError:
        raise
    except Exception as error:
        # Somebody else's code: whatever it raises means that the model did not answer.
        raise ProviderError(f"the model's function: {type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise ProviderError(f"the model's function: gave {type(text).__name__}, not text")
    if not text.strip():
        raise ProviderError("the model's function: gave an empty text")
    return Reply(text=text)
