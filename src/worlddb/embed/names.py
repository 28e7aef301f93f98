"""From a name to an embedder. Making one is cheap; what it needs is loaded at its first text.

Every `model_id` is itself such a name, so a store can say with which embedder it was written.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from worlddb.embed.catalog import MODELS, TOKENS
from worlddb.embed.catalog import models_dir as default_models_dir
from worlddb.errors import InvalidInputError

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder

DEFAULT = "wordllama"
LIBRARIES = ("sentence-transformers", "fastembed")
CHOICES = (
    "wordllama",
    *MODELS,
    *(f"wordllama+{model}" for model in MODELS),
    "hash",
    *(f"{library}:MODEL" for library in LIBRARIES),
    "http(s)://HOST/v1#MODEL",
)
_HASH = re.compile(r"hash(?:-([0-9]{1,6}))?")
_ENDPOINT = re.compile(r"https?://[^#]+#.+", re.DOTALL)
_ENDPOINT_OPTIONS = {"dimensions", "query_prefix", "document_prefix"}


def embedder_named(
    name: str,
    *,
    models_dir: str | os.PathLike[str] | None = None,
    threads: int = 1,
    api_key: str | None = None,
) -> Embedder:
    """Return the embedder that `name` stands for.

    | name | what it is |
    |---|---|
    | `wordllama` | the offline default |
    | `arctic-embed-s` | an installed model, looked for in `models_dir`, run by `threads` threads |
    | `wordllama+arctic-embed-s` | vectors by the first, the best read word by word by the other |
    | `hash`, `hash-128` | words and letters hashed, no model |
    | `sentence-transformers:MODEL`, `fastembed:MODEL` | a model of that library |
    | `https://HOST/v1#MODEL` | an endpoint, asked with `api_key` |

    After an endpoint's model may follow `?dimensions=512&query_prefix=…&document_prefix=…`.

    Raises:
        InvalidInputError: the name stands for nothing; the message lists the choices.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"embedder: give a name, not {type(name).__name__}")
    if name in ("wordllama", "wordllama-256"):
        from worlddb.embed.wordllama import WordLlamaEmbedder

        return WordLlamaEmbedder()
    folder = default_models_dir() if models_dir is None else models_dir
    for model in MODELS.values():
        if name in (model.name, model.model_id):
            from worlddb.embed.onnx import OnnxEmbedder

            return OnnxEmbedder(model, models_dir=folder, threads=threads)
        first, _, second = name.rpartition("+")
        if first and second in (model.name, f"{model.model_id}-{TOKENS}"):
            from worlddb.embed.late import LateEmbedder
            from worlddb.embed.onnx import OnnxEmbedder

            reader = OnnxEmbedder(model, models_dir=folder, threads=threads)
            chosen = embedder_named(first, models_dir=folder, threads=threads, api_key=api_key)
            return LateEmbedder(chosen, reader)
    if match := _HASH.fullmatch(name):
        from worlddb.embed.deterministic import DIM, HashEmbedder

        return HashEmbedder(int(match[1] or DIM))
    library, colon, model_name = name.partition(":")
    if colon and library in LIBRARIES:
        from worlddb.embed import extras

        make = extras.fastembed if library == "fastembed" else extras.sentence_transformers
        return make(model_name)
    if _ENDPOINT.fullmatch(name):
        from worlddb.embed.endpoint import Endpoint, EndpointEmbedder

        return EndpointEmbedder(Endpoint(**_endpoint(name), api_key=api_key))
    raise InvalidInputError(
        f"embedder {name!r:.200}: no such embedder; choose one of {', '.join(CHOICES)}"
    )


def _endpoint(name: str) -> dict[str, Any]:
    """Return what an endpoint's name says.

    Raises:
        InvalidInputError: it asks for something that endpoints do not have.
    """
    base_url, _, rest = name.partition("#")
    model, _, query = rest.partition("?")
    options: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if strange := options.keys() - _ENDPOINT_OPTIONS:
        raise InvalidInputError(
            f"embedder {base_url}: knows no {', '.join(sorted(strange))}; "
            f"it can take {', '.join(sorted(_ENDPOINT_OPTIONS))}"
        )
    if "dimensions" in options:
        if not options["dimensions"].isdecimal():
            raise InvalidInputError(
                f"dimensions: give a positive whole number, not {options['dimensions']!r}"
            )
        options["dimensions"] = int(options["dimensions"])
    return {"base_url": base_url, "model": model, **options}
