"""Extract: from what was said to a draft of what would be written. No model, no store, no clock.

    messages ── Extractor.extract(messages, at) ──▶ Draft(nodes, edges)

X1  An extractor never makes up what the text does not say: everything it reads out of a text has
    the spans it was read from, and where a rule is unsure it gives nothing.
X2  Equal messages and an equal `at` give an equal draft.
"""

from __future__ import annotations

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Extractor

__all__ = ["CHOICES", "DEFAULT", "extractor_named"]

DEFAULT = "rules"
CHOICES = ("verbatim", "rules")


def extractor_named(name: str) -> Extractor:
    """Return the extractor that `name` stands for.

    | name | what it is |
    |---|---|
    | `verbatim` | what was said, as it was said: no guesses |
    | `rules` | and the names, aliases, relations and dates it surely speaks of; the default |

    Raises:
        InvalidInputError: the name stands for nothing; the message lists the choices.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"extractor: give a name, not {type(name).__name__}")
    if name == "verbatim":
        from worlddb.extract.verbatim import VerbatimExtractor

        return VerbatimExtractor()
    if name == "rules":
        from worlddb.extract.rules import RulesExtractor

        return RulesExtractor()
    raise InvalidInputError(
        f"extractor {name!r:.200}: no such extractor; choose one of {', '.join(CHOICES)}"
    )
