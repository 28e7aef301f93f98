"""LlmSummarizer: a language model says in a paragraph what happened in a world."""

from __future__ import annotations

import os
from collections.abc import Sequence

from worlddb.bridge.asking import prompt_text
from worlddb.bridge.chat import Chat, ChatFunction, ask_text
from worlddb.bridge.contract import clean
from worlddb.bridge.lenient import without_thoughts
from worlddb.bridge.parts import Line, as_lines, in_halves, portions
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.model.drafts import Message
from worlddb.model.inputs import check_whole

PORTION_CHARS_MAX = 24_000
PORTION_CHARS_MIN = 500
ANSWER_CHARS_MAX = 100_000


class LlmSummarizer:
    """Summaries by a model that name every event, amount, date and person.

    `chat` is a `Chat`, or a function from messages to text. `prompt` replaces the package's own
    instructions: text, or a path to a file. What is too long for one request is summarized in
    portions, one paragraph each.
    """

    def __init__(
        self,
        chat: Chat | ChatFunction,
        *,
        prompt: str | os.PathLike[str] | None = None,
        portion_chars_max: int = PORTION_CHARS_MAX,
    ) -> None:
        if not callable(chat):
            raise InvalidInputError(f"chat: give a Chat or a function, not {type(chat).__name__}")
        self._chat = chat
        self._prompt = prompt_text(prompt, "summarize")
        self._portion_chars = check_whole(portion_chars_max, "portion_chars_max", PORTION_CHARS_MIN)
        self.name = f"llm:{chat.settings.model}" if isinstance(chat, Chat) else "llm"

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names.

        Raises:
            InvalidInputError: there is nothing to summarize.
            ProviderError: the model failed, or said nothing.
        """
        if not any(message.text.strip() for message in messages):
            raise InvalidInputError("summarize: there is no text")

        def ask(lines: list[Line]) -> tuple[str, bool]:
            request = f"Title: {title}\n\n<messages>\n{as_lines(lines)}\n</messages>"
            asked = [
                {"role": "system", "content": self._prompt},
                {"role": "user", "content": request},
            ]
            reply = ask_text(self._chat, asked)
            text = clean(without_thoughts(reply.text), ANSWER_CHARS_MAX, lines=True)
            if not text:
                raise ProviderError(f"{self.name}: answered with no summary")
            return text, not reply.is_cut

        return "\n".join(
            text
            for portion in portions(messages, self._portion_chars)
            for text in in_halves(portion, ask)
        )
