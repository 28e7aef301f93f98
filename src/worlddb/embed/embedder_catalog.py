"""The catalogue of embedders: their names, and the models that can be installed.

    embedder_named("wordllama") ──▶ Embedder        installable_model("arctic-embed-s") ──▶ files

Making an embedder is cheap: its model is loaded by the first text. Every `model_id` is also a valid
name, so a store can record which embedder made its vectors. An installable model is a folder in the
models folder. A file is accepted by its hash, wherever it came from.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from worlddb.errors import InvalidInputError

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder

HUB = "https://huggingface.co"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model: its name here, its path on the hub, its size and its hash.

    A `text` file may have line ends of another system; they become newlines before the file is
    hashed and stored.
    """

    name: str
    remote: str
    size: int
    sha256: str
    text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallableModel:
    """A model that can be installed.

    `model_id` is stored with its vectors. `query_prefix` is put before each question, as in the
    training of the model. Texts are cut after `tokens_max` tokens. `usual_cosine` is the cosine of
    a question and unrelated texts.
    """

    name: str
    model_id: str
    dim: int
    licence: str
    repository: str
    revision: str
    files: tuple[ModelFile, ...]
    query_prefix: str = ""
    tokens_max: int = 512
    usual_cosine: float | None = None

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size for file in self.files)

    def url(self, file: ModelFile, hub: str = HUB) -> str:
        """Return the address of a file of the pinned revision on the hub."""
        return f"{hub.rstrip('/')}/{self.repository}/resolve/{self.revision}/{file.remote}"


TOKENS = "tokens-4"
"""The name of the projection of token vectors, a part of the model id: see `onnx_embedder`."""

ARCTIC_EMBED_S = InstallableModel(
    name="arctic-embed-s",
    model_id="arctic-embed-s-int8-384",
    dim=384,
    # With it, the nearest texts of foreign questions (cosine 0.60 in LoCoMo) and of answerable ones
    # (0.72) are as near as with the default embedder (0.28, 0.52).
    usual_cosine=0.46,
    licence="Apache-2.0",
    repository="Snowflake/snowflake-arctic-embed-s",
    revision="e596f507467533e48a2e17c007f0e1dacc837b33",
    files=(
        ModelFile(
            name="vocab.txt",
            remote="vocab.txt",
            size=231_508,
            sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            text=True,
        ),
        ModelFile(
            name="model.onnx",
            remote="onnx/model_quantized.onnx",
            size=34_015_111,
            sha256="f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
        ),
    ),
    query_prefix="Represent this sentence for searching relevant passages: ",
)

MODELS: dict[str, InstallableModel] = {model.name: model for model in (ARCTIC_EMBED_S,)}

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
    threads: int | None = None,
    api_key: str | None = None,
) -> Embedder:
    """Return the embedder of a name.

    | name | embedder |
    |---|---|
    | `wordllama` | the offline default |
    | `arctic-embed-s` | an installed model, run by `threads` threads (one a core, at most 4) |
    | `wordllama+arctic-embed-s` | vectors by the first, token vectors by the second |
    | `hash`, `hash-128` | hashed words and letters, no model |
    | `sentence-transformers:MODEL`, `fastembed:MODEL` | a model of that library |
    | `https://HOST/v1#MODEL` | an endpoint, called with `api_key` |

    An endpoint's model may be followed by `?dimensions=512&query_prefix=…&document_prefix=…`.

    Raises:
        InvalidInputError: there is no such embedder; the message lists the choices.
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"embedder: give a name, not {type(name).__name__}")
    if name in ("wordllama", "wordllama-256"):
        from worlddb.embed.embedder import WordLlamaEmbedder

        return WordLlamaEmbedder()
    folder = default_models_dir() if models_dir is None else models_dir
    for model in MODELS.values():
        if name in (model.name, model.model_id):
            from worlddb.embed.onnx_embedder import OnnxEmbedder

            return OnnxEmbedder(model, models_dir=folder, threads=threads)
        first, _, second = name.rpartition("+")
        if first and second in (model.name, f"{model.model_id}-{TOKENS}"):
            from worlddb.embed.onnx_embedder import LateEmbedder, OnnxEmbedder

            reader = OnnxEmbedder(model, models_dir=folder, threads=threads)
            chosen = embedder_named(first, models_dir=folder, threads=threads, api_key=api_key)
            return LateEmbedder(chosen, reader)
    if match := _HASH.fullmatch(name):
        from worlddb.embed.embedder import HASH_DIM, HashEmbedder

        return HashEmbedder(int(match[1] or HASH_DIM))
    library, colon, model_name = name.partition(":")
    if colon and library in LIBRARIES:
        from worlddb.embed.external_embedders import fastembed, sentence_transformers

        make = fastembed if library == "fastembed" else sentence_transformers
        return make(model_name)
    if _ENDPOINT.fullmatch(name):
        from worlddb.embed.external_embedders import EmbeddingEndpoint, EndpointEmbedder

        return EndpointEmbedder(EmbeddingEndpoint(**_endpoint(name), api_key=api_key))
    raise InvalidInputError(
        f"embedder {name!r:.200}: no such embedder; choose one of {', '.join(CHOICES)}"
    )


def _endpoint(name: str) -> dict[str, Any]:
    """Return the settings in the name of an endpoint."""
    base_url, _, rest = name.partition("#")
    model, _, query = rest.partition("?")
    options: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := options.keys() - _ENDPOINT_OPTIONS:
        raise InvalidInputError(
            f"embedder {base_url}: unknown option {', '.join(sorted(unknown))}; "
            f"known are {', '.join(sorted(_ENDPOINT_OPTIONS))}"
        )
    if "dimensions" in options:
        if not options["dimensions"].isdecimal():
            raise InvalidInputError(
                f"dimensions: give a positive whole number, not {options['dimensions']!r}"
            )
        options["dimensions"] = int(options["dimensions"])
    return {"base_url": base_url, "model": model, **options}


def installable_model(name: str) -> InstallableModel:
    """Return the installable model of a name; an `InvalidInputError` if there is none."""
    if name not in MODELS:
        raise InvalidInputError(
            f"model {name!r}: cannot be installed; available are {', '.join(MODELS)}"
        )
    return MODELS[name]


def default_models_dir() -> Path:
    """Return the default folder for models; it need not exist.

    No environment variable changes it, so programs find what the command line installed.
    """
    home = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    return Path(os.path.expanduser(home), "worlddb", "models")


def model_folder(model: InstallableModel, folder: str | os.PathLike[str]) -> Path:
    """Return the folder of a model in a models folder."""
    return Path(folder, model.name)


def missing_files(model: InstallableModel, folder: str | os.PathLike[str]) -> list[ModelFile]:
    """Return the files that are missing or incomplete. Hashes are checked at installation."""
    home = model_folder(model, folder)
    return [file for file in model.files if _size(home / file.name) != file.size]


def installed(name: str, folder: str | os.PathLike[str]) -> bool:
    """Return whether all files of a model are in a models folder."""
    return not missing_files(installable_model(name), folder)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
