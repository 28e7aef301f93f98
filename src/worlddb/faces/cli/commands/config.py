"""`worlddb config`, `doctor`, `models` and `completion`: this installation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    FILE_COMPLETION,
    FOUND,
    OK,
    action_of,
    command,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.terminal import Progress, amount, one_line, paint, print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.faces.diagnosis import DoctorFinding


# `worlddb doctor`: examine this installation.

COLOURS = {"ok": "green", "warn": "bold", "fail": "red"}
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


@command("doctor", EMBEDDER)
def run_doctor(args: argparse.Namespace) -> int:
    """Examine store, index, embedder, model and clients.

    Examine the settings, the store and its indexes, the embedder, the language model
    (without calling it), the server and the connected clients, and give advice about
    each problem. Repairs nothing. The exit code is 1 if anything fails, not for a
    warning. A store above 64 MB is opened but not checked: use 'worlddb check'.

    Examples:
      worlddb doctor                      # all of it
      worlddb doctor --db work.db --json  # another store, for a script
    """
    found = []
    for finding in _findings(args):
        found.append(finding)
        if not wants_json(args):
            _print(finding)
    failed = any(finding.verdict == "fail" for finding in found)
    if wants_json(args):
        lines = [asdict(finding) | {"advice": finding.advice or None} for finding in found]
        print_json({"healthy": not failed, "findings": lines})
    return FOUND if failed else OK


def _findings(args: argparse.Namespace) -> Iterator[DoctorFinding]:
    from worlddb.faces import diagnosis
    from worlddb.faces.face_settings import KINDS, config_path, origins, settings_from

    settings = settings_from(args)
    secrets = [
        one.name
        for one in origins(args)
        if KINDS[one.name].is_secret and one.origin.startswith("file")
    ]
    yield from diagnosis.examine_config(config_path(), secrets)
    yield from diagnosis.examine_store(settings)
    yield from diagnosis.examine_embedder(settings)
    yield from diagnosis.examine_model(settings)
    yield from diagnosis.examine_clients()
    yield from diagnosis.examine_hooks()


def _print(finding: DoctorFinding) -> None:
    mark = paint(MARKS[finding.verdict], COLOURS[finding.verdict])
    print(f"{mark}  {finding.part}: {one_line(finding.seen)}", flush=True)
    if finding.advice:
        print(f"      → {one_line(finding.advice)}", flush=True)


# `worlddb models`: list and install embedding models.


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
def run_models(args: argparse.Namespace) -> int:
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


# `worlddb completion`: print a completion script for a shell, made by shtab from the parser.

SHELLS = ("bash", "zsh", "fish")


@command("completion SHELL", option("shell", "SHELL", ", ".join(SHELLS), choices=SHELLS))
def run_completion(args: argparse.Namespace) -> int:
    """Print a script that completes commands in your shell.

    Print a script with which bash, zsh or fish complete commands, options and their
    choices. It describes the commands of this version: print it again after an upgrade.

    Examples:
      source <(worlddb completion bash)  # now; in ~/.bashrc, always
      eval "$(worlddb completion zsh)"   # the same in ~/.zshrc
      worlddb completion fish | source   # for fish
    """
    import shtab

    from worlddb.faces.cli.command_line import make_parser

    parser = make_parser()
    FILE_COMPLETION.update(shtab.FILE)
    script = shtab.complete(parser, shell=args.shell)
    return report(args, {"shell": args.shell, "script": script}, script)


# `worlddb config`: every setting, its value, and its origin.


@command("config")
def run_config(args: argparse.Namespace) -> int:
    r"""Show each setting and where it comes from.

    Show each setting with its origin: a flag wins over the environment, that over the
    settings file, that over the default. Secrets are hidden. The file is TOML, with the
    names shown here as keys: the one that $WORLDDB_CONFIG names, else config.toml in
    $XDG_CONFIG_HOME/worlddb (~/.config/worlddb; on macOS ~/Library/Application
    Support/worlddb, on Windows %APPDATA%\worlddb). Relative paths in it start from its
    own folder.

    Examples:
      worlddb config                           # all settings
      worlddb config --json                    # the same, for a script
      WORLDDB_CONFIG=/dev/null worlddb config  # without your file
    """
    from worlddb.faces.face_settings import config_path, origins

    found = origins(args)
    if wants_json(args):
        settings = [
            {"name": one.name, "value": one.value_shown, "origin": one.origin} for one in found
        ]
        print_json({"file": config_path(), "settings": settings})
    else:
        print_table(
            ("setting", "value", "origin"),
            [(one.name, _cell(one.value_shown), one.origin) for one in found],
        )
    return 0


def _cell(value: Any) -> str:
    if value is None or value == []:
        return "-"
    return ", ".join(value) if isinstance(value, list) else str(value)
