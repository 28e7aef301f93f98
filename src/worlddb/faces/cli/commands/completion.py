"""`worlddb completion`: print a completion script for a shell, made by shtab from the parser."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.command_options import command, option, report

SHELLS = ("bash", "zsh", "fish")
FILES = {"PATH", "FILE", "TARGET"}  # The metavars of arguments that shells complete as file names.


@command("completion SHELL", option("shell", "SHELL", ", ".join(SHELLS), choices=SHELLS))
def run(args: argparse.Namespace) -> int:
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
    _mark_files(parser, shtab.FILE)
    script = shtab.complete(parser, shell=args.shell)
    return report(args, {"shell": args.shell, "script": script}, script)


def _mark_files(parser: argparse.ArgumentParser, completer: object) -> None:
    """Tell shtab, by an attribute of the action, which arguments are file names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark_files(command, completer)
        elif action.metavar in FILES:
            action.complete = completer  # type: ignore[attr-defined]
