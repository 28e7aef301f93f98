"""Evidence: where in the messages stands what a model says it has read there.

Case, white space and the form of quotes and dashes aside, a quote must be in the text, else there
is no evidence. The span that is returned is always the text itself, never the model's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from worlddb.model.drafts import Message, Span

QUOTE_CHARS_MIN = 3
WORD_CHARS_MIN = 3
# One character for one, so that places stay what they are.
_ALIKE = str.maketrans("‘’‚‛“”„‟–—−\u00a0", "''''\"\"\"\"--- ")
_AROUND = " \t\n\"'…."
_WORD = re.compile(r"\w+")
# Scripts that are written without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")


class Texts:
    """The messages of one draft, to look things up in."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._alike = [message.text.translate(_ALIKE) for message in messages]
        self._words = {word.casefold() for text in self._alike for word in _WORD.findall(text)}

    def quoted(self, quote: str, message: int | None) -> Span | None:
        """Return where a quote stands: in the message it is said to be of, or in any."""
        wanted = quote.translate(_ALIKE)
        for words in dict.fromkeys((wanted, wanted.strip(_AROUND))):
            if len(words) < QUOTE_CHARS_MIN:
                continue
            pattern = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
            for number in self._order(message):
                if match := pattern.search(self._alike[number]):
                    return self._span(number, match)
        return None

    def named(self, name: str) -> Iterator[Span]:
        """Yield the first place of each message where a name stands as a word of its own."""
        words = r"\s+".join(map(re.escape, name.translate(_ALIKE).split()))
        bounded = words if _UNSPACED.search(name) else rf"(?<!\w){words}(?!\w)"
        pattern = re.compile(bounded, re.IGNORECASE)
        for number, text in enumerate(self._alike):
            if match := pattern.search(text):
                yield self._span(number, match)

    def speaks_of(self, name: str) -> bool:
        """Return whether one of the words of a name occurs at all."""
        if _UNSPACED.search(name):
            return any(True for _ in self.named(name))
        words = (word.casefold() for word in _WORD.findall(name.translate(_ALIKE)))
        return any(len(word) >= WORD_CHARS_MIN and word in self._words for word in words)

    def _order(self, first: int | None) -> list[int]:
        numbers = list(range(len(self._messages)))
        if first is None or not 0 <= first < len(numbers):
            return numbers
        return [first, *numbers[:first], *numbers[first + 1 :]]

    def _span(self, number: int, match: re.Match[str]) -> Span:
        text = self._messages[number].text[match.start() : match.end()]
        return Span(message=number, start=match.start(), end=match.end(), text=text)


def date_of(text: str, said: datetime) -> datetime | None:
    """Return the instant that a date names: of a month or a year, its beginning.

    The day on which it was said is the moment at which it was said.
    """
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        found = datetime(year, month, day, tzinfo=said.tzinfo)
    except ValueError:
        return None
    is_day = match[3] is not None
    return said if is_day and found.date() == said.date() else found
