"""Memory tests: expected answers of a memory as data, and their check.

A test is a question with the parameters of `Memory.recall`, and expectations of its answer:

    {"query": "Where do I live?", "user_id": "ada", "as_of": "2026-03-01",
     "hit": "Paris", "among": 3, "never": "Rome", "confidence_above": 0.5}

A file is an object with `tests`. Its other members, such as `user_id`, are defaults for all tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, WorldDBError

if TYPE_CHECKING:
    from worlddb import Hit, Memory, Recall

ASKED = (
    *("query", "names", "k", "as_of", "known_at", "at", "types", "where", "include_retired"),
    *("summaries", "user_id", "agent_id", "app_id", "run_id"),
)
"""Parameters of `Memory.recall` that a test may give."""
TIMES = ("as_of", "known_at", "at")
EXPECTED = ("hit", "never", "confidence_above", "confidence_below", "empty")
"""What a test may expect; a test without any of these would always pass."""
K = 10  # The default of `recall`.
SHOWN_CHARS = 100  # One line of a report.


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A memory that must be among the first hits, or must not be, by its text or id."""

    text: str = ""
    id: str = ""
    among: int | None = None

    def __str__(self) -> str:
        return f"id {self.id}" if self.id else repr(self.text)

    def fits(self, hit: Hit) -> bool:
        """Return whether a hit is this memory: by its text or its id prefix."""
        if self.id:
            return str(hit.node.id).startswith(self.id)
        return _folded(self.text) in _folded(f"{hit.node.name}\n{hit.node.content}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTest:
    """One question and its expectations; `read_tests` makes it from plain data."""

    name: str
    asked: Mapping[str, Any]
    hits: tuple[Expectation, ...] = ()
    never: tuple[Expectation, ...] = ()
    confidence_above: float | None = None
    confidence_below: float | None = None
    empty: bool | None = None

    def failures_of(self, found: Recall) -> list[str]:
        """Return how an answer differs from the expectations, one line each."""
        failures = []
        for wanted in self.hits:
            place = next((at for at, hit in enumerate(found, 1) if wanted.fits(hit)), None)
            among = len(found) if wanted.among is None else wanted.among
            if place is None:
                failures.append(f"{wanted} is not among the {len(found)} hits")
            elif place > among:
                failures.append(f"{wanted} is hit {place}, not among the first {among}")
        for unwanted in self.never:
            for place, hit in enumerate(found, 1):
                if unwanted.fits(hit) and place <= (unwanted.among or len(found)):
                    failures.append(f"{unwanted} must not be a hit, and is hit {place}")
        least, most = self.confidence_above, self.confidence_below
        if least is not None and not found.confidence > least:
            failures.append(f"the confidence is {found.confidence:.3f}, not above {least}")
        if most is not None and not found.confidence < most:
            failures.append(f"the confidence is {found.confidence:.3f}, not below {most}")
        if self.empty is not None and self.empty is bool(found.hits):
            failures.append("there are no hits" if not found.hits else f"{len(found)} hits")
        return failures


@dataclass(frozen=True, slots=True, kw_only=True)
class TestVerdict:
    """The result of one test: its failures, or the `error` that prevented it."""

    __test__ = False  # Not a test class of pytest.

    name: str
    failures: tuple[str, ...] = ()
    error: str | None = None
    confidence: float = 0.0
    hits: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the answer met all expectations."""
        return not self.failures and self.error is None


def run_tests(memory: Memory, tests: Iterable[MemoryTest]) -> list[TestVerdict]:
    """Ask each question and compare its answer; a question that fails is an error."""
    verdicts = []
    for test in tests:
        try:
            found = memory.recall(**test.asked)
        except WorldDBError as error:
            verdicts.append(TestVerdict(name=test.name, error=str(error)))
            continue
        verdicts.append(
            TestVerdict(
                name=test.name,
                failures=tuple(test.failures_of(found)),
                confidence=found.confidence,
                hits=tuple(_shown(hit) for hit in found),
            )
        )
    return verdicts


def read_tests(data: object, where: str = "tests") -> list[MemoryTest]:
    """Return the tests of a file, given as plain data."""
    if not isinstance(data, Mapping) or not isinstance(data.get("tests"), list):
        raise InvalidInputError(f"{where}: give an object with 'tests', a list")
    usual = {key: value for key, value in data.items() if key != "tests"}
    if unknown := sorted(map(str, usual.keys() - {*ASKED, "among"})):
        raise InvalidInputError(f"{where}: unknown key {unknown[0]!r:.60} beside 'tests'")
    if not data["tests"]:
        raise InvalidInputError(f"{where}: there is no test in it")
    return [
        _test({**usual, **_object(one, f"{where}: test {number}")}, f"{where}: test {number}")
        for number, one in enumerate(data["tests"], 1)
    ]


def _test(given: Mapping[str, Any], where: str) -> MemoryTest:
    if unknown := sorted(map(str, given.keys() - {"name", "among", *ASKED, *EXPECTED})):
        raise InvalidInputError(
            f"{where}: unknown key {unknown[0]!r:.60}; known are {', '.join((*ASKED, *EXPECTED))}"
        )
    if not any(key in given for key in EXPECTED):
        raise InvalidInputError(f"{where}: it expects nothing; give {', '.join(EXPECTED)}")
    hits = _expectations(given.get("hit"), given.get("among"), f"{where}: hit")
    never = _expectations(given.get("never"), None, f"{where}: never")
    asked = {key: given[key] for key in ASKED if key in given}
    asked |= {key: _zoned(asked[key]) for key in TIMES if key in asked}
    asked.setdefault("k", max([K, *(one.among or 0 for one in (*hits, *never))]))
    if given.get("empty") not in (None, True, False):
        raise InvalidInputError(f"{where}: empty: give true or false")
    return MemoryTest(
        name=str(given.get("name") or given.get("query") or given.get("names") or where),
        asked=asked,
        hits=hits,
        never=never,
        confidence_above=_share(given, "confidence_above", where),
        confidence_below=_share(given, "confidence_below", where),
        empty=given.get("empty"),
    )


def _zoned(time: object) -> object:
    """Return a time in a form that `recall` accepts."""
    if isinstance(time, date) and not isinstance(time, datetime):  # YAML reads a day as a date.
        return time.isoformat()
    return time


def _expectations(given: object, among: object, where: str) -> tuple[Expectation, ...]:
    found = []
    for one in _listed(given):
        parts = {"text": one} if isinstance(one, str) else dict(_object(one, where))
        parts = {"among": among, **parts}
        if parts.keys() - {"text", "id", "among"} or ("text" in parts) == ("id" in parts):
            raise InvalidInputError(f"{where}: give a text, or an object with 'text' or 'id'")
        named = parts.get("text", parts.get("id"))
        if not isinstance(named, str) or not named.strip():
            raise InvalidInputError(f"{where}: give at least one character, not {named!r:.40}")
        place = parts["among"]
        if place is not None and (type(place) is not int or place < 1):
            raise InvalidInputError(f"{where}: among: give a number from 1 on, not {place!r:.40}")
        found.append(Expectation(**parts))
    return tuple(found)


def _listed(given: object) -> list[Any]:
    return [] if given is None else given if isinstance(given, list) else [given]


def _object(given: object, where: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"{where}: give an object, not {given!r:.60}")
    return given


def _share(given: Mapping[str, Any], key: str, where: str) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInputError(f"{where}: {key}: give a number from 0 to 1, not {value!r:.40}")
    return float(value)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _shown(hit: Hit) -> str:
    text = " ".join((hit.node.content or hit.node.name).split())
    return f"{hit.node.id.short} {text[:SHOWN_CHARS]}"
