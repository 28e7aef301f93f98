"""`worlddb completion`: a script by which your shell completes this command."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.command_options import Subparsers, add_command, wants_json
from worlddb.faces.cli.terminal import print_json

SHELLS = ("bash", "zsh", "fish")


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "completion",
        arguments="SHELL",
        summary="print a script that completes commands in your shell",
        description=(
            "Print a script by which bash, zsh or fish complete commands, options and their\n"
            "choices. It is made from this version's commands: print it anew after an upgrade."
        ),
        examples=(
            ("source <(worlddb completion bash)", "now; in ~/.bashrc, always"),
            ("source <(worlddb completion zsh)", "the same in ~/.zshrc"),
            ("worlddb completion fish | source", "for fish"),
        ),
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from worlddb.faces.cli import completing, make_parser

    commands = completing.commands_of(make_parser())
    make = {
        "bash": completing.bash_script,
        "zsh": completing.zsh_script,
        "fish": completing.fish_script,
    }
    script = make[args.shell](commands)
    if wants_json(args):
        print_json({"shell": args.shell, "script": script})
    else:
        print(script, end="")
    return 0
