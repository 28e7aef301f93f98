"""Shapes: the JSON form of a value as a Pydantic model, made from the value's own class.

`Plain.to_dict` says how a value is written; this says the same as a schema, so that nobody has to
write each class twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from inspect import getdoc
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model

from worlddb.model.address import Id

HexId = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


@cache
def shape_of(value_class: type) -> type[BaseModel]:
    """Return a model of what `value_class(...).to_dict()` gives."""
    hints = get_type_hints(value_class)
    # Every field is there: `to_dict` writes those with a default, too.
    made: dict[str, Any] = {one.name: (_shape(hints[one.name]), ...) for one in fields(value_class)}
    return create_model(
        value_class.__name__,
        __config__=ConfigDict(extra="forbid"),
        __doc__=getdoc(value_class),
        **made,
    )


def _shape(hint: Any) -> Any:
    if hint is Id:
        return HexId
    if hint is datetime:
        return AwareDatetime
    if isinstance(hint, type) and is_dataclass(hint):
        return shape_of(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return list[_shape(inner[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, _shape(inner[1])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(None if one is NoneType else _shape(one) for one in inner)]  # noqa: UP007
    return hint
