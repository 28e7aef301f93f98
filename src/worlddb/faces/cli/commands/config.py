"""`worlddb config`: every setting, its value, and its origin."""

from __future__ import annotations

import argparse
from typing import Any

from worlddb.faces.cli.command_options import command, wants_json
from worlddb.faces.cli.terminal import print_json, print_table


@command("config")
def run(args: argparse.Namespace) -> int:
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
