"""LlmTiebreaker: a language model is asked which of several is meant, or whether none is."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

from worlddb.bridge.asking import ask_data, prompt_text
from worlddb.bridge.chat import Chat, ChatFunction
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.identity.match_values import Match, NamedNode

OPTIONS_MAX = 10
NAMES_MAX = 10
SCHEMA = {
    "type": "object",
    "properties": {
        "choice": {"type": ["integer", "null"]},
        "reason": {"type": "string"},
    },
    "required": ["choice", "reason"],
    "additionalProperties": False,
}


class LlmTiebreaker:
    """Breaks ties between matches; give it to `db.ingest(tiebreaker=…)`.

    `chat` is a `Chat`, or a function from messages to text. `prompt` replaces the package's own
    instructions: text, or a path to a file. Where the model fails or answers nonsense, nothing is
    decided: the matches become proposals for a person, as without a tiebreaker, and `errors` says
    what was wrong.
    """

    def __init__(
        self, chat: Chat | ChatFunction, *, prompt: str | os.PathLike[str] | None = None
    ) -> None:
        if not callable(chat):
            raise InvalidInputError(f"chat: give a Chat or a function, not {type(chat).__name__}")
        self._chat = chat
        self._prompt = prompt_text(prompt, "tiebreak")
        self._lock = threading.Lock()
        self._errors: list[str] = []

    @property
    def errors(self) -> list[str]:
        """Why the model decided nothing, for each time that it failed."""
        with self._lock:
            return list(self._errors)

    def __call__(self, candidate: NamedNode, matches: Sequence[Match]) -> Match | None:
        """Return the match that the candidate is, or None if none is or nobody knows."""
        resting = self._chat.resting() if isinstance(self._chat, Chat) else None
        if resting is not None:
            self._undecided(resting)
            return None
        options = matches[:OPTIONS_MAX]
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
        text = json.dumps(request, ensure_ascii=False, indent=1)
        try:
            choice = ask_data(self._chat, self._prompt, text, SCHEMA).value.get("choice")
        except ProviderError as error:
            # An identity that nobody decided stays open; the text must not be lost for it.
            self._undecided(str(error))
            return None
        if isinstance(choice, str) and choice.strip().isdecimal():
            choice = int(choice)
        if isinstance(choice, int) and not isinstance(choice, bool) and 1 <= choice <= len(options):
            return options[choice - 1]
        return None

    def _undecided(self, reason: str) -> None:
        with self._lock:
            self._errors.append(reason)


def _described(named: NamedNode) -> dict[str, Any]:
    found: dict[str, Any] = {"type": named.type, "names": list(named.names[:NAMES_MAX])}
    if named.attributes:
        found["attributes"] = dict(named.attributes)
    return found
