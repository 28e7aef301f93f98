"""Inputs: checks a caller's values, converts them to what is stored, and returns values as JSON.

Scopes are named by the arguments of a call (`user_id="ada"`); their ids follow from their names.
Times are aware datetimes outside and integer microseconds UTC inside. Everything that reaches an
address or the disk passes these checks first, so bad input is refused before anything is written.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from inspect import signature
from json.encoder import encode_basestring as _quoted
from typing import Any, Literal, TypedDict, TypeVar

from worlddb.errors import CorruptionError, InvalidInputError, StorageError
from worlddb.model.address import ID_BYTES, Id, node_address

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TIMES_CACHED_MAX = 4_096  # the rows of a commit share one time

METADATA_DEPTH_MAX = 50
"""Far below Python's own limit, so that metadata can be read at any depth of calls."""
INT_BITS = 64  # numbers of a longer line are left to the general encoder, which may refuse them
MICROS_MIN = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
MICROS_MAX = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND

CLOCK_KNOWN = (datetime(2026, 11, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
"""No correct clock shows an earlier time, because this version did not exist then."""
YEAR = timedelta(days=365) // MICROSECOND
CLOCK_AHEAD_MAX = 20 * YEAR
"""Longer than a store is left unused; a clock that lost its date is further off."""

Instant = datetime | str
DAY = re.compile(r"\d{4}-\d\d-\d\d")


def to_micros(value: datetime | str, field: str) -> int:
    """Return `value` as microseconds since 1970 UTC; a plain day is its beginning in UTC."""
    if type(value) is datetime and value.tzinfo is UTC:
        return (value - EPOCH) // MICROSECOND  # Nothing to check: stored times and the clock's.
    hint = "tzinfo=UTC"
    if isinstance(value, str):
        hint = "2026-01-31T09:30:00Z"
        try:
            text = value.strip()
            value = datetime.fromisoformat(f"{text}T00:00Z" if DAY.fullmatch(text) else text)
        except ValueError:
            raise InvalidInputError(
                f"{field}: {value!r} is not ISO-8601; write 2026-01-31 or 2026-01-31T09:30:00+00:00"
            ) from None
    if not isinstance(value, datetime):
        raise InvalidInputError(f"{field}: give a datetime or ISO-8601 text, not {type(value)!r}")
    if value.utcoffset() is None:
        raise InvalidInputError(
            f"{field}: {value.isoformat()} has no time zone; add one, as in {hint}"
        )
    micros = (value - EPOCH) // MICROSECOND
    if not MICROS_MIN <= micros <= MICROS_MAX:
        raise InvalidInputError(f"{field}: {value.isoformat()} is outside the years 1 to 9999 UTC")
    return micros


def commit_time(clock: int, last: int) -> int:
    """Return the time of the commit after the one at `last`, when the clock shows `clock`.

    Commit times increase, even if the clock is set back. So one commit far in the future would date
    all later ones there, and today's state could not be asked for until then. A slow clock does no
    harm: it may be corrected at any time.
    """
    latest = max(last, CLOCK_KNOWN) + CLOCK_AHEAD_MAX
    if clock > latest:
        shown = from_micros(min(clock, MICROS_MAX)).date()
        raise StorageError(
            f"the clock shows {shown}, more than {CLOCK_AHEAD_MAX // YEAR} years after the last "
            f"commit ({from_micros(last).date()}); nothing was written. Set the machine's clock; "
            "if it is right, install a newer worlddb"
        )
    return max(clock, last + 1)


@lru_cache(TIMES_CACHED_MAX)
def from_micros(micros: int) -> datetime:
    """Return stored microseconds since 1970 as an aware UTC datetime."""
    try:
        return EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise CorruptionError(
            f"a stored time, {micros} µs after 1970, is outside the calendar; `worlddb check` "
            "lists all damage; restore a backup"
        ) from None


NAMES_MAX = 100
"""Names of one call: each is looked up, and each may become an edge of every message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes of UTF-8 unless said otherwise."""

    type_bytes_max: int = 128
    name_bytes_max: int = 4_096
    content_bytes_max: int = 1 << 20
    metadata_bytes_max: int = 1 << 16
    note_bytes_max: int = 4_096
    notes_max: int = 1_000


def encode_text(value: str, what: str, bytes_max: int) -> bytes:
    """Return `value` as UTF-8."""
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{what}: character {error.start} is a lone surrogate and no text; "
            "decode the source with errors='replace'"
        ) from None
    except AttributeError:
        raise InvalidInputError(f"{what}: give text, not {type(value).__name__}") from None
    if b"\0" in data:
        raise InvalidInputError(f"{what}: has a NUL character; remove it")
    if len(data) > bytes_max:
        raise InvalidInputError(
            f"{what}: {len(data):,} bytes, the limit is {bytes_max:,}; shorten or split it"
        )
    return data


def check_type(value: str, limits: Limits) -> None:
    """Check the type of a node or an edge: short, printable, no white space around it."""
    encode_text(value, "type", limits.type_bytes_max)
    if not value or value != value.strip() or not value.isprintable():
        raise InvalidInputError(f"type: {value!r} is not a type; use a word such as 'Fact'")


def check_notes(values: Sequence[str] | str | None, what: str, limits: Limits) -> tuple[str, ...]:
    """Return aliases or sources as a tuple of distinct, checked strings in their given order."""
    if values is None:
        return ()
    if isinstance(values, bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInputError(f"{what}: give text or a list of texts, not {values!r}")
    given = (values,) if isinstance(values, str) else tuple(values)
    if len(given) > limits.notes_max:
        raise InvalidInputError(
            f"{what}: {len(given)} given, the limit is {limits.notes_max}; give fewer"
        )
    for value in given:
        encode_text(value, what, limits.note_bytes_max)
        if not value.strip():
            raise InvalidInputError(f"{what}: one of them is empty; leave it out")
    return tuple(dict.fromkeys(given))


def check_fraction(value: Any, what: str) -> None:
    """Check that a value is None or a number from 0 to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 <= value <= 1):
        raise InvalidInputError(f"{what}: give a number from 0 to 1, not {value!r:.40}")


def check_integer(value: Any, what: str, least: int, most: int | None = None) -> int:
    """Return a whole number between `least` and `most`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        wanted = f"whole number between {least} and {most}"
        if most is None:
            wanted = "positive whole number" if least == 1 else f"whole number of at least {least}"
        raise InvalidInputError(f"{what}: give a {wanted}, not {value!r:.40}")
    return int(value)


def check_words(values: Any, what: str) -> tuple[str, ...]:
    """Return one or several names of types as a tuple."""
    given = (values,) if isinstance(values, str) else values
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise InvalidInputError(f"{what}: give the name of a type or several, not {values!r}")
    words = tuple(given)
    if not words:
        raise InvalidInputError(f"{what}: give at least one")
    for word in words:
        encode_text(word, what, Limits().type_bytes_max)
    return words


def check_names(given: Any, what: str) -> tuple[str, ...]:
    """Return names as a tuple, without the white space around them; there may be none."""
    several = (given,) if isinstance(given, str) else given
    if not isinstance(several, list | tuple) or len(several) > NAMES_MAX:
        most = f"at most {NAMES_MAX} names"
        raise InvalidInputError(f"{what}: give {most} as a list, not {given!r:.80}")
    for name in several:
        if not isinstance(name, str) or not name.strip():
            raise InvalidInputError(f"{what}: give names such as 'Sarah Chen', not {name!r:.80}")
        encode_text(name, what, Limits().name_bytes_max)
    return tuple(name.strip() for name in several)


def check_choice(value: Any, what: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of the choices of an option."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{what} {value!r:.40}: use one of {', '.join(choices)}")


def check_direction(direction: str) -> None:
    """Check the direction in which edges are followed.

    Raises:
        InvalidInputError: not one of out, in, both.
    """
    check_choice(direction, "direction", ("out", "in", "both"))


def encode_metadata(metadata: Mapping[str, Any] | None, limits: Limits) -> str:
    """Return metadata as canonical JSON text: sorted keys, no white space, no ASCII escapes."""
    if not metadata and (metadata is None or type(metadata) is dict):
        return "{}"
    if type(metadata) is dict and (text := _flat_json(metadata)) is not None:
        encode_text(text, "metadata", limits.metadata_bytes_max)
        return text
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata: give a mapping, not {type(metadata).__name__}")
    try:
        text = json.dumps(
            _json_only(metadata, METADATA_DEPTH_MAX),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"metadata: not JSON data: {error}") from None
    encode_text(text, "metadata", limits.metadata_bytes_max)
    return text


def _flat_json(metadata: dict[Any, Any]) -> str | None:
    """Return a mapping to texts, numbers and lists of them as canonical JSON; None if it has more.

    Most edges have such metadata, and setting up the general encoder takes longer than this.
    """
    parts = []
    try:
        for key in sorted(metadata):
            value = metadata[key]
            if type(value) is list:
                parts.append(f"{_quoted(key)}:[{','.join([_plain_json(item) for item in value])}]")
            else:
                parts.append(f"{_quoted(key)}:{_plain_json(value)}")
    except TypeError:
        return None
    return "{" + ",".join(parts) + "}"


def _plain_json(value: Any) -> str:
    """Return a text, a truth value or a number as JSON; TypeError for any other value."""
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int and value.bit_length() < INT_BITS:
        return str(value)
    raise TypeError


def _json_only(value: Any, depth: int) -> Any:
    """Return `value` with mappings as dicts; refuse keys that JSON would change silently.

    The depth is limited by a number, not by the stack that is left: stored metadata must be
    readable from anywhere.
    """
    if not isinstance(value, Mapping | list | tuple):
        return value
    if not depth:
        raise ValueError(f"nested deeper than {METADATA_DEPTH_MAX}")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
        return {key: _json_only(item, depth - 1) for key, item in value.items()}
    return [_json_only(item, depth - 1) for item in value]


def premises_of(metadata: str) -> list[Id]:
    """Return the premises in an inferred edge's metadata, by id."""
    data = json.loads(metadata)
    named = data.get("premises") if data.get("inferred") is True else None
    if not isinstance(named, list):
        return []
    whole = (item for item in named if isinstance(item, str) and len(item) == 2 * ID_BYTES)
    return [Id(item) for item in whole if not set(item) - set("0123456789abcdef")]


# -- values as JSON --------------------------------------------------------------------------------

_AS_THEY_ARE = frozenset((str, int, float, bool, type(None)))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    plain = _PLAIN_OF.get(kind)
    if plain is not None:
        return plain(value)
    if isinstance(value, Id):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.to_dict() if hasattr(value, "to_dict") else value


_PLAIN_OF: dict[type, Callable[[Any], Any]] = {
    Id: bytes.hex,
    datetime: datetime.isoformat,
    tuple: lambda value: [_plain(item) for item in value],
    dict: lambda value: {
        key: item if type(item) in _AS_THEY_ARE else _plain(item) for key, item in value.items()
    },
}
"""The usual types, which are not asked one by one whether they are of some class."""


class Plain:
    """Gives a frozen value its JSON form: ids as hex, times as ISO-8601."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON data."""
        found = {}
        for name in type(self).__dataclass_fields__:  # type: ignore[attr-defined]
            value = getattr(self, name)
            # Most fields need no conversion.
            found[name] = value if type(value) in _AS_THEY_ARE else _plain(value)
        return found


_Made = TypeVar("_Made")


def made_fast(value: type[_Made]) -> type[_Made]:
    """Return a frozen dataclass with slots, with a faster `__init__` of the same parameters.

    The usual one looks up `object.__setattr__` for each field; this one sets the slots. A read
    makes a value for each row, and a write one for each step.
    """
    of: dict[str, Any] = {"missing": MISSING}
    parameters, steps = ["self", "*"], []
    for one in fields(value):  # type: ignore[arg-type]
        name = one.name
        of[f"set_{name}"] = vars(value)[name].__set__
        of[f"default_{name}"], given = one.default, name
        if one.default_factory is not MISSING:
            of[f"default_{name}"], of[f"make_{name}"] = MISSING, one.default_factory
            given = f"make_{name}() if {name} is missing else {name}"
        is_needed = one.default is one.default_factory is MISSING
        parameters.append(name if is_needed else f"{name}=default_{name}")
        steps.append(f"set_{name}(self, {given})")
    if hasattr(value, "__post_init__"):
        steps.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(steps), of)  # As dataclasses do.
    usual = value.__init__
    faster = of["__init__"]
    faster.__signature__, faster.__annotations__ = signature(usual), usual.__annotations__
    faster.__qualname__, faster.__module__ = usual.__qualname__, usual.__module__
    value.__init__ = faster  # type: ignore[method-assign]
    return value


# -- scopes and speakers ---------------------------------------------------------------------------

ScopeKind = Literal["user", "agent", "app", "run"]
KINDS: tuple[ScopeKind, ...] = ("user", "agent", "app", "run")
"""From the longest-lived to the shortest; a memory lives in the first kind that a call names."""
SCOPE = "Scope"
VALUE_BYTES_MAX = 512
"""Bytes; longer than any id or address of a user. It becomes the name of a node."""
VALUES_MAX = 100
"""Scopes of one kind that a call may name; each costs a look-up."""
Ids = str | Sequence[str] | None
SCOPES_CACHED = 4_096
"""Scopes whose ids are cached: the callers of a busy server, at 200 bytes each."""


class ScopeIds(TypedDict, total=False):
    """The arguments that name scopes: one value of a kind, or several."""

    user_id: Ids
    agent_id: Ids
    app_id: Ids
    run_id: Ids


@dataclass(frozen=True, slots=True, order=True)
class ScopeName(Plain):
    """A scope: its kind and its value, written `user:ada`."""

    kind: ScopeKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    def ids(self) -> ScopeIds:
        """Return the argument that names only this scope."""
        ids: ScopeIds = {f"{self.kind}_id": self.value}  # type: ignore[misc]
        return ids

    def id(self, generation: int = 0) -> Id:
        """Return the id of this scope's node."""
        return scope_id(self, generation)


@lru_cache(maxsize=SCOPES_CACHED)
def scope_id(scope: ScopeName, generation: int = 0) -> Id:
    """Return the id of a scope's node."""
    return Id(node_address(SCOPE, str(scope).encode(), b"", generation))


Groups = tuple[tuple[ScopeName, ...], ...]
"""Scopes by kind. A memory must be inside one scope of every group."""


def born(generation: int) -> datetime:
    """Return the time of creation of the scopes of a generation."""
    return from_micros(generation)


def scope_named(name: str) -> ScopeName:
    """Return a scope from the name of its node."""
    kind, colon, value = name.partition(":") if isinstance(name, str) else ("", "", "")
    for scope_kind in KINDS:
        if kind == scope_kind and colon:
            return _scope(scope_kind, value)
    raise InvalidInputError(
        f"{name!r:.100} is not a scope; write it as user:ada, with one of {KINDS}"
    )


def groups_of(given: Mapping[str, Any]) -> Groups:
    """Return the scopes that `user_id=…, agent_id=…, app_id=…, run_id=…` name, by kind."""
    unknown = sorted(given.keys() - {f"{kind}_id" for kind in KINDS})
    if unknown:
        raise TypeError(
            f"unknown argument {unknown[0]!r}; name scopes by user_id, agent_id, app_id, run_id"
        )
    groups = []
    for kind in KINDS:
        values = given.get(f"{kind}_id")
        if values is None:
            continue
        listed = [values] if isinstance(values, str) else values
        if isinstance(listed, Mapping | bytes) or not isinstance(listed, Iterable):
            raise InvalidInputError(f"{kind}_id: give text or a list of texts, not {values!r:.100}")
        names = tuple(sorted({_scope(kind, value) for value in listed}))
        if not 0 < len(names) <= VALUES_MAX:
            raise InvalidInputError(f"{kind}_id: give 1 to {VALUES_MAX} values, or leave it out")
        groups.append(names)
    return tuple(groups)


def _scope(kind: ScopeKind, value: str) -> ScopeName:
    encode_text(value, f"{kind}_id", VALUE_BYTES_MAX)
    # Two spellings of one letter would make two users that look the same.
    value = unicodedata.normalize("NFC", value)
    if not value or value != value.strip():
        raise InvalidInputError(
            f"{kind}_id: {value!r:.100} is empty or has white space around it; give it without"
        )
    if not value.isprintable():
        raise InvalidInputError(f"{kind}_id: {value!r:.100} has control characters; remove them")
    return ScopeName(kind, value)


APP = "app"
_OF_APP = frozenset({"system", "developer"})


def said_by(speaker: str) -> str:
    """Return the speaker to store and show for a text.

    The roles of an app's own instructions are not speakers: a model that reads "system: …" among
    its memories may follow the text as an instruction.
    """
    # By its letters: "[System]:" and "sys\u200btem" look the same to a model.
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", speaker))
    return APP if "".join(letters).casefold() in _OF_APP else speaker
