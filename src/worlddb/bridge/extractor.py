"""LlmExtractor: a language model reads what was said, and a draft is made of what it tells.

    messages ──portions──▶ model ──Told──▶ Drafting ──▶ Draft

What was said is always kept verbatim beside it. A model that fails is told as `ProviderError`;
`db.ingest` then writes what the `fallback` extracts, and remembers that the model's part waits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from worlddb.bridge.asking import ask_data, prompt_text
from worlddb.bridge.chat import Chat, ChatFunction
from worlddb.bridge.contract import SCHEMA, Told, told
from worlddb.bridge.drafting import Drafting
from worlddb.bridge.parts import Line, Splits, as_lines, in_halves, portions
from worlddb.errors import InvalidInputError
from worlddb.ingest.extractors import extractor_named
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.model.inputs import check_whole

PORTION_CHARS_MAX = 24_000
PORTION_CHARS_MIN = 500
NAMES_TOLD_MAX = 100


class LlmExtractor:
    """What was said, and what a model reads out of it: a summary, dated facts, and their subjects.

    `chat` is a `Chat`, or a function from messages to text. `prompt` replaces the package's own
    instructions: text, or a path to a file. `fallback` is the extractor whose draft is written when
    the model fails. A long conversation is read in portions of `portion_chars_max` characters; one
    whose reading is cut is read again in halves, for all portions of it `splits_max` times at most.
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
        if not callable(chat):
            raise InvalidInputError(f"chat: give a Chat or a function, not {type(chat).__name__}")
        self._chat = chat
        self._prompt = prompt_text(prompt, "extract")
        self._portion_chars = check_whole(portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN)
        self._splits_max = (
            splits_max if splits_max is None else check_whole(splits_max, "splits_max", 0)
        )
        self.fallback = extractor_named(fallback) if isinstance(fallback, str) else fallback
        self.name = f"llm:{chat.settings.model}" if isinstance(chat, Chat) else "llm"

    def resting(self) -> str | None:
        """Return why a write should not wait for the model now; None if it may be asked."""
        return self._chat.resting() if isinstance(self._chat, Chat) else None

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say.

        Raises:
            ProviderError: the model failed, or answered with something else.
        """
        if not messages:
            return Draft()
        drafting = Drafting(messages, at, self.name)
        splits = Splits(self._splits_max)
        for portion in portions(messages, self._portion_chars):

            def ask(lines: list[Line]) -> tuple[Told, bool]:
                request = _request(lines, at, drafting.names)
                parsed = ask_data(self._chat, self._prompt, request, SCHEMA)
                return told(parsed.value), parsed.is_whole

            for answer in in_halves(portion, ask, splits):
                drafting.add(answer)
        return drafting.draft()


def _request(lines: Sequence[Line], at: datetime, names: Sequence[str]) -> str:
    speakers = ", ".join(dict.fromkeys(line.message.speaker for line in lines))
    known = f"Names used so far: {'; '.join(names[:NAMES_TOLD_MAX])}\n" if names else ""
    return (
        f"Date of the conversation: {at:%Y-%m-%d (%A)}\n"
        f"Speakers: {speakers}\n"
        f"{known}\n"
        f"<messages>\n{as_lines(lines, at)}\n</messages>\n\n"
        "Answer with the JSON object alone."
    )
