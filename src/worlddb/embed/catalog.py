"""The catalogue: which models can be installed, from where, and by which hashes they are known.

A model is a folder of the models folder, with the files named here. A file is the right one if its
hash is; where it came from does not matter.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from worlddb.errors import InvalidInputError

HUB = "https://huggingface.co"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model: its name here, its path on the hub, and what its bytes must be.

    A `text` file may come with the line ends of another system; they are turned into newlines
    before it is hashed and kept.
    """

    name: str
    remote: str
    size: int
    sha256: str
    text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be installed.

    `model_id` is what its vectors are stored under. `query_prefix` stands before what is asked, as
    the model was trained; `tokens_max` is where it cuts a text.
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

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return sum(file.size for file in self.files)

    def url(self, file: ModelFile, hub: str = HUB) -> str:
        """Return where the hub keeps a file of the pinned revision."""
        return f"{hub.rstrip('/')}/{self.repository}/resolve/{self.revision}/{file.remote}"


TOKENS = "tokens-4"
"""What the token vectors of a model are called, by how they are made small: see `embed.late`."""

ARCTIC_EMBED_S = Model(
    name="arctic-embed-s",
    model_id="arctic-embed-s-int8-384",
    dim=384,
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

MODELS: dict[str, Model] = {model.name: model for model in (ARCTIC_EMBED_S,)}


def model_named(name: str) -> Model:
    """Return a model of the catalogue.

    Raises:
        InvalidInputError: there is none of that name.
    """
    if name not in MODELS:
        raise InvalidInputError(
            f"model {name!r}: cannot be installed; these can: {', '.join(MODELS)}"
        )
    return MODELS[name]


def models_dir() -> Path:
    """Return the folder of this user's models, where none is given; it need not exist.

    No environment variable changes it, so that programs find what the command line installed.
    """
    home = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    return Path(os.path.expanduser(home), "worlddb", "models")


def model_folder(model: Model, folder: str | os.PathLike[str]) -> Path:
    """Return where a model lies in a models folder."""
    return Path(folder, model.name)


def missing_files(model: Model, folder: str | os.PathLike[str]) -> list[ModelFile]:
    """Return the files that are not there in full. Hashes were checked when they were installed."""
    home = model_folder(model, folder)
    return [file for file in model.files if _size(home / file.name) != file.size]


def installed(name: str, folder: str | os.PathLike[str]) -> bool:
    """Return whether a model's files lie in a models folder.

    Raises:
        InvalidInputError: there is no model of that name.
    """
    return not missing_files(model_named(name), folder)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
