"""Conditions: filters such as `{"project": "x", "priority": {"$gte": 2}}`, checked and compared.

    where ──condition_of──▶ Condition ──matches(node)──▶ bool

A name is a metadata key; `a.b` is the key `b` inside the object `a`. These names are fields of the
node itself, and `metadata.type` is the metadata key with such a name:

    type, speaker, source, valid_from (or at), valid_to (or expires_at), known_from

C1  Each value of a list in the metadata is a value of its key, so `{"tags": "a"}` is true of `["a",
    "b"]`. A list of wanted values means any of them.
C2  Values of different kinds never match: 1 is not "1", and true is not 1.
C3  A missing key is not equal to anything: `$ne`, `$nin` and `$not` are true of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import said_by, to_micros
from worlddb.model.records import Node

CONDITIONS_MAX = 100  # more than a person writes; each costs a comparison per node
DEPTH_MAX = 8  # deeper nesting is a mistake of a program, and costs stack
CHOICES_MAX = 1_000  # values of one `$in`: a page of ids
TEXT_CHARS_MAX = 4_096  # longer texts are found by recall, not by filters
PREFIX = "metadata."
TIMES = {
    "at": "valid_from",
    "valid_from": "valid_from",
    "valid_to": "valid_to",
    "expires_at": "valid_to",
    "known_from": "known_from",
}
"""The names of times, and the field of a node for each."""
NODE_FIELDS = frozenset({"type", "speaker", "source", *TIMES.values()})
RANGES: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": lambda one, other: one > other,
    "$gte": lambda one, other: one >= other,
    "$lt": lambda one, other: one < other,
    "$lte": lambda one, other: one <= other,
}
OPERATORS = ("$eq", "$ne", "$in", "$nin", *RANGES, "$exists", "$contains", "$not")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: `$and`, `$or` and `$not` over `parts`, or an operator on a field's values.

    `of_node` if the field is one of the node itself and not a metadata key.
    """

    operator: str
    field: str = ""
    value: Any = None
    parts: tuple[Condition, ...] = ()
    of_node: bool = False

    def fields(self) -> Iterator[tuple[str, bool]]:
        """Yield every field, and whether it is a field of the node itself."""
        if self.field:
            yield self.field, self.of_node
        for part in self.parts:
            yield from part.fields()

    def __str__(self) -> str:
        if self.parts:
            inner = f" {self.operator[1:]} ".join(map(str, self.parts))
            return f"not ({inner})" if self.operator == "$not" else f"({inner})"
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        word = {"$eq": "is", "$in": "is one of"}.get(self.operator, self.operator)
        return f"{self.field} {word} {value!r:.40}"


def condition_of(where: Mapping[str, Any]) -> Condition:
    """Return a filter as a single condition.

    Raises:
        InvalidInputError: an unknown operator, a value that cannot be compared, or too many.
    """
    count = [0]
    return _all(_parts(where, 0, count), where)


def _all(parts: Sequence[Condition], where: Any) -> Condition:
    if not parts:
        raise InvalidInputError(f"where: give at least one condition, not {where!r:.100}")
    return parts[0] if len(parts) == 1 else Condition("$and", parts=tuple(parts))


def _parts(where: Any, depth: int, count: list[int]) -> list[Condition]:
    if not isinstance(where, Mapping):
        raise InvalidInputError(
            f'where: give a mapping such as {{"project": "x"}}, not {where!r:.100}'
        )
    if depth > DEPTH_MAX:
        raise InvalidInputError(f"where: conditions are nested deeper than {DEPTH_MAX}")
    found = []
    for key, value in where.items():
        count[0] += 1
        if count[0] > CONDITIONS_MAX:
            raise InvalidInputError(f"where: more than {CONDITIONS_MAX} conditions")
        if not isinstance(key, str) or not key:
            raise InvalidInputError(f"where: {key!r:.40} is not a name of a field; give text")
        if key in ("$and", "$or"):
            found.append(_joined(key, value, depth, count))
        elif key == "$not":
            found.append(Condition("$not", parts=(_all(_parts(value, depth + 1, count), value),)))
        elif key.startswith("$"):
            known = ", ".join(("$and", "$or", "$not"))
            raise InvalidInputError(f"where: {key!r:.40}: only {known} stand before a field's name")
        else:
            found += _on_field(key, value, depth, count)
    return found


def _joined(key: str, value: Any, depth: int, count: list[int]) -> Condition:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        raise InvalidInputError(f"where: {key} needs a list of conditions, not {value!r:.100}")
    return Condition(key, parts=tuple(_all(_parts(one, depth + 1, count), one) for one in value))


def _on_field(key: str, value: Any, depth: int, count: list[int]) -> list[Condition]:
    """Return the conditions on one field: a plain value, a list of them, or operators."""
    name = TIMES.get(key, key)
    of_node = name in NODE_FIELDS
    field = name if of_node else key.removeprefix(PREFIX)
    if not isinstance(value, Mapping):
        return [_compared(field, of_node, "$in" if _is_list(value) else "$eq", value)]
    if not value:
        raise InvalidInputError(f"where: {key}: give an operator such as $eq, or a value")
    found = []
    for operator, operand in value.items():
        if operator not in OPERATORS:
            raise InvalidInputError(
                f"where: {key}: there is no operator {operator!r:.40}; use {', '.join(OPERATORS)}"
            )
        if operator == "$not":
            if depth >= DEPTH_MAX:
                raise InvalidInputError(f"where: conditions are nested deeper than {DEPTH_MAX}")
            inner = _all(_on_field(key, operand, depth + 1, count), operand)
            found.append(Condition("$not", parts=(inner,)))
        else:
            found.append(_compared(field, of_node, operator, operand))
    return found


def _compared(field: str, of_node: bool, operator: str, value: Any) -> Condition:
    """Return one comparison, with its value checked."""
    if operator in ("$ne", "$nin"):
        plain = "$in" if operator == "$nin" else "$eq"
        return Condition("$not", parts=(_compared(field, of_node, plain, value),))
    if operator == "$exists":
        if not isinstance(value, bool):
            raise InvalidInputError(f"where: {field}: $exists is true or false, not {value!r:.40}")
        there = Condition("$exists", field, True, of_node=of_node)
        return there if value else Condition("$not", parts=(there,))
    if operator == "$eq" and value is None:
        return _compared(field, of_node, "$exists", False)
    if operator == "$in":
        if not _is_list(value) or not 0 < len(value) <= CHOICES_MAX:
            raise InvalidInputError(
                f"where: {field}: $in and $nin need 1 to {CHOICES_MAX} values, not {value!r:.60}"
            )
        values = tuple(_plain(field, of_node, one) for one in value if one is not None)
        chosen = Condition("$in", field, values, of_node=of_node)
        if len(values) == len(value):
            return chosen
        missing = _compared(field, of_node, "$exists", False)
        return Condition("$or", parts=(missing, chosen))
    checked = _plain(field, of_node, value)
    if operator in RANGES and (isinstance(checked, bool) or checked is None):
        raise InvalidInputError(f"where: {field}: {operator} needs a number or text, not {value!r}")
    return Condition(operator, field, checked, of_node=of_node)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _plain(field: str, of_node: bool, value: Any) -> Any:
    """Return a value that can be compared; a time becomes microseconds."""
    if of_node and field in TIMES.values():
        return to_micros(value, f"where: {field}")
    if value is not None and not isinstance(value, str | bool | int | float):
        raise InvalidInputError(
            f"where: {field} needs text, a number, true, false, null or a list of these, "
            f"not {value!r:.60}"
        )
    if isinstance(value, str) and len(value) > TEXT_CHARS_MAX:
        raise InvalidInputError(f"where: {field}: a text of more than {TEXT_CHARS_MAX} characters")
    return value


# -- comparing -------------------------------------------------------------------------------------


def matches(node: Node, condition: Condition) -> bool:
    """Return whether a node matches a condition."""
    match condition.operator:
        case "$and":
            return all(matches(node, part) for part in condition.parts)
        case "$or":
            return any(matches(node, part) for part in condition.parts)
        case "$not":
            return not matches(node, condition.parts[0])
    holds = comparison(condition)
    return any(holds(*value) for value in values_of(node, condition.field, condition.of_node))


def comparison(condition: Condition) -> Callable[[Any, bool], bool]:
    """Return the test of an operator: a function of one value and whether a list contains it.

    `$contains` holds for a list with the value, and for a text with the text in it.
    """
    operator, wanted = condition.operator, condition.value
    if operator == "$exists":
        return lambda value, listed: value is not None
    if operator == "$in":
        return lambda value, listed: any(_same(value, one) for one in wanted)
    if operator == "$contains":
        if not isinstance(wanted, str):
            return lambda value, listed: listed and _same(value, wanted)
        return lambda value, listed: (
            _same(value, wanted) if listed else isinstance(value, str) and wanted in value
        )
    if operator == "$eq":
        return lambda value, listed: _same(value, wanted)
    ranges = RANGES[operator]
    kinds: Any = str if isinstance(wanted, str) else (int, float)
    return lambda value, listed: (
        isinstance(value, kinds) and not isinstance(value, bool) and ranges(value, wanted)
    )


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def values_of(node: Node, field: str, of_node: bool) -> Iterable[tuple[Any, bool]]:
    """Return the values of a node's field, each with whether a list contains it."""
    if not of_node:
        return ((value, listed) for key, value, listed in flat(node.metadata) if key == field)
    if field == "type":
        return ((node.type, False),)
    if field == "speaker":
        return ((said_by(node.name), False),) if node.type == "Turn" else ()
    if field == "source":
        return ((source, False) for source in node.provenance)
    time = getattr(node, field)
    return () if time is None else ((to_micros(time, field), False),)


def flat(metadata: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield the keys and plain values of metadata, each with whether a list contains the value.

    Keys of inner objects are joined by dots.
    """
    for key, value in metadata.items():
        name = f"{start}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        elif isinstance(value, list | tuple):
            inner = (one for one in value if not isinstance(one, list | tuple | Mapping))
            yield from ((name, one, True) for one in inner)
        else:
            yield name, value, False
