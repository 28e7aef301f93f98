"""`worlddb models`: list and install embedding models."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.command_options import action_of, command, option, report, wants_json
from worlddb.faces.cli.progress import Progress, amount
from worlddb.faces.cli.terminal import one_line, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path


@command(
    "models [list | install NAME]",
    action_of("list", "install"),
    option("name", "NAME", "the model to install", nargs="?"),
    option(
        "--from",
        "PATH",
        "a folder, a wheel or zip, or a file with the others beside it; any file names",
        dest="source",
    ),
    option("--hub", "URL", "a mirror of the hub"),
)
def run(args: argparse.Namespace) -> int:
    """List and install embedding models.

    List the embedding models that run on this machine, or install one: from the hub, or
    from your own files. Only files with the hashes pinned in this version are accepted.
    Models are stored in $WORLDDB_MODELS, else in your data directory.

    Examples:
      worlddb models                                            # all models, installed or not
      worlddb models install arctic-embed-s                     # download it from the hub
      worlddb models install arctic-embed-s --from ~/Downloads  # no network needed
    """
    if args.action == "install":
        return _install(args)
    if args.name or args.source or args.hub:
        raise InvalidInputError("models list: takes no NAME, --from or --hub")
    rows = [_bundled(), *_installable(_models_dir(args))]
    if wants_json(args):
        print_json(rows)
    else:
        print_table(
            ("name", "dim", "size", "licence", "installed", "where"),
            [
                (
                    row["name"],
                    row["dim"],
                    amount(row["bytes"], "bytes"),
                    row["licence"],
                    "yes" if row["installed"] else "no",
                    row["path"],
                )
                for row in rows
            ],
        )
        print("With arctic-embed-s installed, --embedder wordllama+arctic-embed-s works, too.")
    return 0


def _models_dir(args: argparse.Namespace) -> Path:
    from pathlib import Path

    from worlddb.embed.embedder_catalog import default_models_dir
    from worlddb.faces.face_settings import settings_from

    given = settings_from(args).models_dir
    return Path(given) if given else default_models_dir()


def _bundled() -> dict[str, Any]:
    """Return the row of the model that comes with this package."""
    from worlddb.embed.wordllama_embedder import DIM, LICENCE, MODEL_ID, SIZE, model_folder

    folder = model_folder()
    return {
        "name": "wordllama",
        "model_id": MODEL_ID,
        "dim": DIM,
        "bytes": SIZE,
        "licence": LICENCE,
        "installed": folder is not None,
        "path": str(folder or ""),
    }


def _installable(folder: Path) -> list[dict[str, Any]]:
    from worlddb.embed.embedder_catalog import MODELS, installed, model_folder

    return [
        {
            "name": model.name,
            "model_id": model.model_id,
            "dim": model.dim,
            "bytes": model.size,
            "licence": model.licence,
            "installed": installed(model.name, folder),
            "path": str(model_folder(model, folder)),
        }
        for model in MODELS.values()
    ]


def _install(args: argparse.Namespace) -> int:
    from worlddb.embed.embedder_catalog import HUB, installable_model
    from worlddb.embed.model_installation import install

    if not args.name:
        raise InvalidInputError("models install: give the NAME of a model; see 'worlddb models'")
    if args.source == "" or (args.source and args.hub):
        raise InvalidInputError("models install: give either --from PATH or --hub URL")
    model = installable_model(args.name)
    with Progress("installing", unit="bytes", total=model.size) as progress:
        try:
            path = install(
                model,
                _models_dir(args),
                source=args.source,
                hub=args.hub or HUB,
                on_progress=progress.show,
            )
        except ProviderError as error:
            if args.source:
                raise
            raise ProviderError(f"{error}. Or install files that you have: --from PATH") from None
    found = {"name": model.name, "model_id": model.model_id, "path": str(path)}
    return report(args, found, f"{model.name} is installed in {one_line(str(path))}")
