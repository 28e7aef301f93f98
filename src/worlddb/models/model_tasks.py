"""The tasks that a chat model does for the engine: extract facts, summarize, break ties.

    LlmExtractor    messages ──portions──▶ model ──Extraction──▶ Draft
    LlmSummarizer   messages ──portions──▶ model ──▶ one paragraph per portion
    LlmTiebreaker   candidate and matches ──▶ model ──▶ one match, or none

Each takes a `Chat`, or a function from messages to text. Each `prompt` replaces the package's own
instructions: text, or the path of a file. A model that fails raises `ProviderError`; a tiebreaker
decides nothing instead. Nothing is lost by a failure: `db.ingest` writes the draft of the fallback
extractor and puts the text into the extraction queue.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.identity.match_values import Match, NamedNode
from worlddb.ingest.extractors import extractor_named
from worlddb.model.inputs import check_integer
from worlddb.model.records import Draft, Extractor, Message
from worlddb.models.chat_client import Chat, ChatFunction, JsonSchema, ask_text
from worlddb.models.extraction_draft import (
    EXTRACTION_SCHEMA,
    Extraction,
    ExtractionDraft,
    clean_text,
    parse_extraction,
)
from worlddb.models.lenient_json import NotJsonError, Parsed, parse, without_thoughts

# Requests to a chat model: prompts, messages as numbered lines, and replies as data.
#
#     messages ──portions()──▶ portions ──as_lines()──▶ "[2] 2026-01-31 09:30 Anna: I moved."
#     ask_json(chat, prompt, request, schema) ──▶ Parsed
#
# A long conversation is sent in portions that fit into one request. Where the reply to a portion is
# cut off, its two halves are sent instead. A reply without a JSON object is asked for once more.

JSON_REMINDER = (
    "That was no JSON object. Give the same answer once more, as one JSON object and nothing else."
)
ECHO_CHARS_MAX = 4_000  # Enough of a wrong reply for the model to see what it did.
PORTION_CHARS_MAX = 24_000  # About 6,000 tokens: half of what small local models can read.
PORTION_CHARS_MIN = 500  # Below this a portion would hold single sentences without context.
HALVINGS_MAX = 4  # A sixteenth of a portion whose reply is still cut will not get better.
LINE_CHARS = 40  # About what a line takes beside the text: number, time, speaker.

Answer = TypeVar("Answer")


def prompt_text(prompt: str | os.PathLike[str] | None, default: str) -> str:
    """Return a prompt: the given text, the content of the given file, or the package's own."""
    if prompt is None:
        return files("worlddb.models").joinpath("prompts", f"{default}.txt").read_text("utf-8")
    if isinstance(prompt, os.PathLike):
        try:
            with open(prompt, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"prompt: {os.fspath(prompt)}: {error}") from None
    else:
        text = prompt
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("prompt: give its text, or the Path of a file that holds it")
    return text


def ask_json(chat: Chat | ChatFunction, prompt: str, request: str, schema: JsonSchema) -> Parsed:
    """Return the JSON object in a model's reply; a `ProviderError` if two replies have none."""
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": request}]
    reply = ask_text(chat, messages, schema)
    try:
        parsed = _parse_object(reply.text)
    except NotJsonError:
        messages += [
            {"role": "assistant", "content": reply.text[:ECHO_CHARS_MAX]},
            {"role": "user", "content": JSON_REMINDER},
        ]
        reply = ask_text(chat, messages, schema)
        parsed = _parse_object(reply.text)
    return Parsed(parsed.value, parsed.is_whole and not reply.is_cut)


def _parse_object(text: str) -> Parsed:
    """Return the object in a reply; some models wrap it in a string or in a list of one."""
    parsed = parse(text)
    if isinstance(parsed.value, str):
        parsed = parse(parsed.value)
    value = parsed.value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        raise NotJsonError(f"the reply is not a JSON object: {' '.join(text.split())!r:.200}")
    return Parsed(value, parsed.is_whole)


class MessageLine(NamedTuple):
    """A message, or a piece of a long one, with the number of the message."""

    number: int
    message: Message
    text: str


def portions(messages: Sequence[Message], chars_max: int) -> Iterator[list[MessageLine]]:
    """Yield the messages in order, as portions of at most `chars_max` characters."""
    portion: list[MessageLine] = []
    chars = 0
    for number, message in enumerate(messages):
        for piece in _pieces(message.text, chars_max):
            size = len(piece) + LINE_CHARS
            if portion and chars + size > chars_max:
                yield portion
                portion, chars = [], 0
            portion.append(MessageLine(number, message, piece))
            chars += size
    if portion:
        yield portion


class SplitBudget:
    """How often the portions of one conversation may still be halved; None sets no limit."""

    def __init__(self, splits_max: int | None = None) -> None:
        self._left = splits_max

    def take(self) -> bool:
        """Return whether another split is allowed, and count it."""
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


def in_halves(
    portion: list[MessageLine],
    ask: Callable[[list[MessageLine]], tuple[Answer, bool]],
    splits: SplitBudget | None = None,
    halvings: int = HALVINGS_MAX,
) -> list[Answer]:
    """Return the answer for a portion if it is whole, else the answers for its halves.

    `ask` returns an answer and whether it is whole. A portion that cannot be halved again keeps
    the answer that was cut.
    """
    splits = splits or SplitBudget()
    answer, whole = ask(portion)
    if whole or len(portion) == 1 or not halvings or not splits.take():
        return [answer]
    middle = len(portion) // 2
    return [
        *in_halves(portion[:middle], ask, splits, halvings - 1),
        *in_halves(portion[middle:], ask, splits, halvings - 1),
    ]


def as_lines(portion: Sequence[MessageLine], at: datetime | None = None) -> str:
    """Return a portion as text: one line per message, with its number, time and speaker."""
    lines = []
    for number, message, text in portion:
        said_at = message.at or at
        time = "" if said_at is None else f" {said_at:%Y-%m-%d %H:%M}"
        lines.append(f"[{number}]{time} {message.speaker}: {text}")
    return "\n".join(lines)


def _pieces(text: str, chars_max: int) -> Iterator[str]:
    """Yield a text in pieces that fit into a portion, split at spaces where possible."""
    room = max(chars_max - LINE_CHARS, 1)
    while len(text) > room:
        cut = text.rfind(" ", room // 2, room) + 1 or room
        yield text[:cut]
        text = text[cut:]
    yield text


# The tasks that a chat model does for the engine.

KNOWN_NAMES_MAX = 100  # Entity names repeated in each request, so that portions agree on them.
SUMMARY_CHARS_MAX = 100_000  # A longer reply is not a summary of a portion of 24,000 characters.
OPTIONS_MAX = 10  # Matches come best first; the right one is hardly ever below the tenth.
NAMES_MAX = 10  # Names and aliases shown per option.
CHOICE_SCHEMA = {
    "type": "object",
    "properties": {"choice": {"type": ["integer", "null"]}, "reason": {"type": "string"}},
    "required": ["choice", "reason"],
    "additionalProperties": False,
}


class LlmExtractor:
    """Extracts a summary, dated facts and their entities, beside the text itself.

    `fallback` is the extractor whose draft is written when the model fails. A long conversation is
    read in portions of `portion_chars_max` characters. A portion whose reply is cut off is read
    again in halves, at most `splits_max` times per conversation (None: no limit).
    """

    def __init__(
        self,
        chat: Chat | ChatFunction,
        *,
        prompt: str | os.PathLike[str] | None = None,
        fallback: Extractor | str = "verbatim",
        portion_chars_max: int = PORTION_CHARS_MAX,
        splits_max: int | None = None,
    ) -> None:
        self._chat = _checked_chat(chat)
        self._prompt = prompt_text(prompt, "extract")
        self._portion_chars = check_integer(
            portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN
        )
        self._splits_max = (
            splits_max if splits_max is None else check_integer(splits_max, "splits_max", 0)
        )
        self.fallback = extractor_named(fallback) if isinstance(fallback, str) else fallback
        self.name = _task_name(chat)

    def resting(self) -> str | None:
        """Return why a write should not wait for the model now; None if it may be asked."""
        return self._chat.resting() if isinstance(self._chat, Chat) else None

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is the time of messages without their own.

        Raises:
            ProviderError: the model failed, or its reply has no facts and no summary.
        """
        if not messages:
            return Draft()
        made = ExtractionDraft(messages, at, self.name)
        splits = SplitBudget(self._splits_max)

        def ask(lines: list[MessageLine]) -> tuple[Extraction, bool]:
            request = _extraction_request(lines, at, made.names)
            parsed = ask_json(self._chat, self._prompt, request, EXTRACTION_SCHEMA)
            return parse_extraction(parsed.value), parsed.is_whole

        for portion in portions(messages, self._portion_chars):
            for extraction in in_halves(portion, ask, splits):
                made.add(extraction)
        return made.draft()


def _extraction_request(lines: Sequence[MessageLine], at: datetime, names: Sequence[str]) -> str:
    speakers = ", ".join(dict.fromkeys(line.message.speaker for line in lines))
    known = f"Names used so far: {'; '.join(names[:KNOWN_NAMES_MAX])}\n" if names else ""
    return (
        f"Date of the conversation: {at:%Y-%m-%d (%A)}\n"
        f"Speakers: {speakers}\n"
        f"{known}\n"
        f"<messages>\n{as_lines(lines, at)}\n</messages>\n\n"
        "Answer with the JSON object alone."
    )


class LlmSummarizer:
    """Summarizes a world in plain text that names every event, amount, date and person.

    A world too long for one request is summarized in portions, one paragraph each.
    """

    def __init__(
        self,
        chat: Chat | ChatFunction,
        *,
        prompt: str | os.PathLike[str] | None = None,
        portion_chars_max: int = PORTION_CHARS_MAX,
    ) -> None:
        self._chat = _checked_chat(chat)
        self._prompt = prompt_text(prompt, "summarize")
        self._portion_chars = check_integer(
            portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN
        )
        self.name = _task_name(chat)

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of the messages in the world with this title.

        Raises:
            InvalidInputError: there is nothing to summarize.
            ProviderError: the model failed, or its reply is empty.
        """
        if not any(message.text.strip() for message in messages):
            raise InvalidInputError("summarize: there is no text")

        def ask(lines: list[MessageLine]) -> tuple[str, bool]:
            request = f"Title: {title}\n\n<messages>\n{as_lines(lines)}\n</messages>"
            asked = [
                {"role": "system", "content": self._prompt},
                {"role": "user", "content": request},
            ]
            reply = ask_text(self._chat, asked)
            text = clean_text(without_thoughts(reply.text), SUMMARY_CHARS_MAX, lines=True)
            if not text:
                raise ProviderError(f"{self.name}: the reply has no summary")
            return text, not reply.is_cut

        return "\n".join(
            text
            for portion in portions(messages, self._portion_chars)
            for text in in_halves(portion, ask)
        )


class LlmTiebreaker:
    """Chooses between several matches of a name; give it to `db.ingest(tiebreaker=…)`.

    Where the model fails or its reply makes no sense, nothing is decided: the matches become
    proposals for a person, as without a tiebreaker, and `errors` has the reason.
    """

    def __init__(
        self, chat: Chat | ChatFunction, *, prompt: str | os.PathLike[str] | None = None
    ) -> None:
        self._chat = _checked_chat(chat)
        self._prompt = prompt_text(prompt, "tiebreak")
        self._lock = threading.Lock()
        self._errors: list[str] = []

    @property
    def errors(self) -> list[str]:
        """The reason of each time that the model decided nothing because it failed."""
        with self._lock:
            return list(self._errors)

    def __call__(self, candidate: NamedNode, matches: Sequence[Match]) -> Match | None:
        """Return the match that is the same as the candidate; None if none is, or in doubt."""
        resting = self._chat.resting() if isinstance(self._chat, Chat) else None
        if resting is not None:
            self._add_error(resting)
            return None
        options = matches[:OPTIONS_MAX]
        try:
            request = _choice_request(candidate, options)
            choice = ask_json(self._chat, self._prompt, request, CHOICE_SCHEMA).value.get("choice")
        except ProviderError as error:
            # The identity stays open. The text must not be lost because of it.
            self._add_error(str(error))
            return None
        if isinstance(choice, str) and choice.strip().isdecimal():
            choice = int(choice)
        if isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= len(options):
            return options[choice - 1]
        return None

    def _add_error(self, reason: str) -> None:
        with self._lock:
            self._errors.append(reason)


def _choice_request(candidate: NamedNode, options: Sequence[Match]) -> str:
    request = {
        "candidate": _described(candidate),
        "options": [
            {
                "number": number,
                **_described(match.option),
                "alike_by": match.tier,
                "confidence": round(match.confidence, 3),
            }
            for number, match in enumerate(options, 1)
        ],
    }
    return json.dumps(request, ensure_ascii=False, indent=1)


def _described(named: NamedNode) -> dict[str, Any]:
    described: dict[str, Any] = {"type": named.type, "names": list(named.names[:NAMES_MAX])}
    if named.attributes:
        described["attributes"] = dict(named.attributes)
    return described


def _checked_chat(chat: Chat | ChatFunction) -> Chat | ChatFunction:
    if not callable(chat):
        raise InvalidInputError(f"chat: give a Chat or a function, not {type(chat).__name__}")
    return chat


def _task_name(chat: Chat | ChatFunction) -> str:
    return f"llm:{chat.settings.model}" if isinstance(chat, Chat) else "llm"
