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
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.identity.match_values import Match, NamedNode
from worlddb.ingest.extractors import extractor_named
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import check_whole
from worlddb.models.chat_client import Chat, ChatFunction, ask_text
from worlddb.models.extraction_contract import (
    EXTRACTION_SCHEMA,
    Extraction,
    clean_text,
    parse_extraction,
)
from worlddb.models.extraction_draft import ExtractionDraft
from worlddb.models.lenient_json import without_thoughts
from worlddb.models.model_requests import (
    PORTION_CHARS_MAX,
    PORTION_CHARS_MIN,
    MessageLine,
    SplitBudget,
    as_lines,
    ask_json,
    in_halves,
    portions,
    prompt_text,
)

KNOWN_NAMES_MAX = 100  # Entity names repeated in each request, so that portions agree on them.
SUMMARY_CHARS_MAX = 100_000  # A longer reply is no summary of a portion of 24,000 characters.
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
        self._portion_chars = check_whole(portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN)
        self._splits_max = (
            splits_max if splits_max is None else check_whole(splits_max, "splits_max", 0)
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
        self._portion_chars = check_whole(portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN)
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
