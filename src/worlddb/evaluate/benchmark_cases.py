"""Benchmark cases: a conversation with its questions, and the settings of a run.

Gold (the evidence that answers a question) is given as places, never by the names in the file,
because some of those names give the answer away. The functions below read the fields of one item
and report errors in terms of the file, with indexes from 1:

    LayoutError("haystack_sessions, 3, 2, content: is not a text but null")

The settings include everything that changes the figures of a run. Runs with equal settings can be
continued and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Literal, cast

from worlddb import Embedder, Limits, RecallSettings, embedder_named
from worlddb.errors import InvalidInputError

ADVERSARIAL = "adversarial"
CHARS_PER_TOKEN = 4  # as in `Hit.tokens`
QUESTION_BYTES_MAX = 1 << 16  # the limit of `WorldDB.recall`
LIMITS = Limits()
_KINDS: dict[type, str] = {
    **{dict: "an object", list: "a list", str: "a text", bool: "true or false"},
    **{int: "a number", float: "a number", type(None): "null"},
}


@dataclass(frozen=True, slots=True)
class CaseTurn:
    """One turn of a conversation, by one speaker."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class CaseSession:
    """A session: turns without a long pause."""

    at: datetime
    turns: tuple[CaseTurn, ...]


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question about a conversation, with the places of its evidence.

    `has_answer` is False where the right answer is that there is none. `gold_missing` counts the
    evidence that the file names but does not contain. `last` is the end of a chain of evidence.
    `outdated` are turns that a gold turn has replaced.
    """

    id: str
    category: str
    text: str
    at: datetime | None
    sessions: frozenset[int]
    turns: frozenset[tuple[int, int]]
    reference: str = ""
    has_answer: bool = True
    gold_missing: int = 0
    last: tuple[int, int] | None = None
    outdated: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def of_turns(
        cls,
        id: str,
        category: str,
        text: str,
        turns: frozenset[tuple[int, int]],
        *,
        at: datetime | None = None,
        **more: Any,
    ) -> GoldQuestion:
        """Return a question whose gold sessions are those of its gold turns."""
        sessions = frozenset(session for session, _ in turns)
        return cls(id, category, text, at, sessions, turns, **more)

    @property
    def is_measured(self) -> bool:
        """Whether retrieval can be measured: the question has an answer, and evidence is marked."""
        return self.has_answer and bool(self.sessions)


@dataclass(frozen=True, slots=True)
class Case:
    """A conversation and the questions about it."""

    sessions: tuple[CaseSession, ...]
    questions: tuple[GoldQuestion, ...]

    def asked_at(self, question: GoldQuestion) -> datetime:
        """Return the time of a question: that of the file, else that of the last session."""
        return question.at or max(session.at for session in self.sessions)


def tokens_of(text: str) -> int:
    """Return the estimated tokens of a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


class LayoutError(ValueError):
    """An item does not follow its format. The message is for the owner of the file."""


def object_in(value: Any, what: str) -> dict[str, Any]:
    """Return an object unchanged; raise `LayoutError` for anything else."""
    return cast("dict[str, Any]", _checked(value, dict, "an object", what))


def list_in(value: Any, what: str) -> list[Any]:
    """Return a list unchanged; raise `LayoutError` for anything else."""
    return cast("list[Any]", _checked(value, list, "a list", what))


def text_in(value: Any, what: str) -> str:
    """Return a text unchanged; raise `LayoutError` for anything else."""
    return cast("str", _checked(value, str, "a text", what))


def time_in(value: Any, what: str, read: Callable[[str], datetime]) -> datetime:
    """Return the time that `read` finds in a text; raise `LayoutError` if there is none."""
    text = text_in(value, what)
    try:
        return read(text)
    except ValueError:
        raise LayoutError(f"{what}: is not a date: {text!r:.50}") from None


def _checked(value: Any, kind: type, name: str, what: str) -> Any:
    if not isinstance(value, kind):
        raise LayoutError(f"{what}: is not {name} but {_kind_of(value)}")
    return value


def reference_in(value: Any, what: str) -> str:
    """Return a reference answer, which may be a number, as text; else raise `LayoutError`."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        if str(value).strip():
            return str(value)
        raise LayoutError(f"{what}: is empty")
    raise LayoutError(f"{what}: is neither a text nor a number but {_kind_of(value)}")


def _kind_of(value: Any) -> str:
    return _KINDS.get(type(value), "something else")


def check_case(case: Case) -> None:
    """Check that a store accepts all texts of a case, before the first question is asked."""
    for number, session in enumerate(case.sessions, 1):
        for place, turn in enumerate(session.turns, 1):
            what = f"session {number}, turn {place}"
            _check_text(turn.speaker, f"{what}: the speaker", LIMITS.name_bytes_max)
            _check_text(turn.text, f"{what}: the text", LIMITS.content_bytes_max)
    for question in case.questions:
        what = f"question {question.id!r:.80}"
        _check_text(question.id, f"{what}: its id", LIMITS.name_bytes_max)
        _check_text(question.reference, f"{what}: its answer", LIMITS.content_bytes_max)
        # A recall reads NUL as white space, and a question is never written.
        _check_text(question.text.replace("\0", " "), what, QUESTION_BYTES_MAX)
        if not question.text.strip():
            raise LayoutError(f"{what}: is empty")
        if question.at is None and not case.sessions:
            raise LayoutError("has no session that says when its questions are asked")


def _check_text(text: str, what: str, bytes_max: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise LayoutError(
            f"{what}: character {error.start} is a lone surrogate and no text; "
            "decode the source with errors='replace'"
        ) from None
    if "\0" in text:
        raise LayoutError(f"{what}: has a NUL character; remove it")
    if size > bytes_max:
        raise LayoutError(
            f"{what}: {size:,} bytes, the limit is {bytes_max:,}; shorten or split it"
        )


MODES = ("retrieval", "qa", "both")


READINGS = ("verbatim", "rules", "model")


POOLINGS = ("attention", "mean")


LANES = ("text", "vector", "graph")


SEED = 20_260_101  # of samples; any fixed number will do


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Everything that changes the figures of a run.

    `reading` says what is extracted from a conversation when it is written: nothing, the output of
    rules, or that of a model; `facts` (with their entities) and `summaries` can be excluded. The
    answerer gets `k` hits, together at most `context_tokens`. `roles` has the names of the models,
    `addresses` their endpoints, `limits` their maximum tokens per reply, and `prompts` the digests
    of their prompts.
    """

    benchmark: str
    mode: Literal["retrieval", "qa", "both"] = "retrieval"
    reading: Literal["verbatim", "rules", "model"] = "verbatim"
    facts: bool = True
    summaries: bool = True
    k: int = 50
    context_tokens: int | None = None
    lanes: tuple[str, ...] = LANES
    weighed: bool = True
    classes: bool = True
    embedder: str | None = None
    pooling: Literal["attention", "mean"] = "attention"
    adversarial: bool = False
    seed: int = SEED
    roles: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    models_dir: str | None = field(default=None, metadata={"aside": True})
    embedder_key: str | None = field(default=None, repr=False, metadata={"aside": True})

    def __post_init__(self) -> None:
        """Check the settings; InvalidInputError for a value that cannot be run."""
        for name, known in (("mode", MODES), ("reading", READINGS), ("pooling", POOLINGS)):
            if getattr(self, name) not in known:
                raise InvalidInputError(f"{name}: use one of {', '.join(known)}")
        for name, count in (("k", self.k), ("context_tokens", self.context_tokens)):
            if count is not None and count < 1:
                raise InvalidInputError(f"{name}: give a positive whole number, not {count}")
        self.recall_settings()

    @property
    def asks_model(self) -> bool:
        """Whether questions are answered, not only searched."""
        return self.mode != "retrieval"

    @property
    def measures_retrieval(self) -> bool:
        """Whether ranks are measured."""
        return self.mode != "qa"

    def recall_settings(self) -> RecallSettings:
        """Return the settings of recall: only turns can be hits, because gold is turns."""
        weights = dict.fromkeys(self.lanes, 1.0)
        settings = RecallSettings(weights=weights, classes=self.classes, worlds=False)
        return settings if self.weighed else replace(settings, weighing=None)

    def written(self) -> RunSettings:
        """Return these settings with defaults for everything that does not affect writing."""
        return replace(self, lanes=LANES, weighed=True, classes=True)

    def make_embedder(self) -> Embedder | str | None:
        """Return the embedder of these settings; None for the default."""
        if self.embedder is None or self.embedder == "none":
            return self.embedder
        return embedder_named(self.embedder, models_dir=self.models_dir, api_key=self.embedder_key)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, without settings of this machine.

        Without answers, the settings of answers are left out.
        """
        aside = {item.name for item in fields(self) if item.metadata.get("aside")}
        aside |= set() if self.asks_model else {"k", "context_tokens", "summaries", "adversarial"}
        kept = {name: value for name, value in asdict(self).items() if name not in aside}
        return kept | {"lanes": list(self.lanes)}
