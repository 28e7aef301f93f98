"""Completing: scripts by which a shell completes `worlddb`, made from the commands themselves.

What the parser knows is all they know: commands, options, and the choices of either. Everything
else a shell completes as the name of a file.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FILES = {"PATH", "FILE", "TARGET"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option, under all its names."""

    names: tuple[str, ...]
    told: str
    takes_value: bool
    takes_file: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command: its options, and the words its arguments can be, one list for each."""

    name: str
    told: str
    options: tuple[Option, ...]
    arguments: tuple[tuple[str, ...], ...]


def commands_of(parser: argparse.ArgumentParser) -> list[Command]:
    """Return what a parser knows; the first, without a name, is the parser itself."""
    found = [_command("", "", parser)]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            found += [_command(name, told[name], made) for name, made in action.choices.items()]
    return found


def _command(name: str, told: str, parser: argparse.ArgumentParser) -> Command:
    actions = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction) and action.help != argparse.SUPPRESS
    ]
    return Command(
        name=name,
        told=told,
        options=tuple(
            Option(
                names=tuple(action.option_strings),
                told=action.help or "",
                takes_value=action.nargs != 0,
                takes_file=action.metavar in FILES,
                choices=_choices(action),
            )
            for action in actions
            if action.option_strings
        ),
        arguments=tuple(_choices(action) for action in actions if not action.option_strings),
    )


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(str(choice) for choice in action.choices or ())


def bash_script(commands: Sequence[Command]) -> str:
    """Return the script for bash."""
    names = [command.name for command in commands if command.name]
    valued = sorted({name for one in commands for name in _valued(one)})
    cases = []
    for command in commands:
        for option in command.options:
            if option.choices:
                pattern = "|".join(f"{command.name}/{name}" for name in option.names)
                cases.append(f"    {pattern}) words={_words(option.choices)} ;;")
    options = [
        f"    {command.name or 'none'}) words={_words(_names(command))} ;;" for command in commands
    ]
    arguments = [
        f"    {command.name}/{place}) words={_words(words)} ;;"
        for command in commands
        for place, words in enumerate(command.arguments)
        if words
    ]
    return "\n".join(
        [
            "# Completion of worlddb for bash. In ~/.bashrc: source <(worlddb completion bash)",
            "_worlddb() {",
            "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
            "  local command= place=0 words= skip= i word",
            "  # bash makes words of --option=value: the option, '=' and the value.",
            "  if [[ $cur == = ]]; then cur=; fi",
            "  if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            "    word=${COMP_WORDS[i]}",
            "    if [[ $word == = ]]; then skip=1; continue; fi",
            "    if [[ -n $skip ]]; then skip=; continue; fi",
            f"    case $word in {'|'.join(valued)}) skip=1; continue ;; -*) continue ;; esac",
            "    if [[ -z $command ]]; then command=$word; else place=$((place + 1)); fi",
            "  done",
            "  if [[ -n $skip ]]; then",
            '    case "$command/$prev" in',
            *cases,
            "    esac",
            "  elif [[ $cur == -* ]]; then",
            '    case "${command:-none}" in',
            *options,
            "    esac",
            "  elif [[ -z $command ]]; then",
            f"    words={_words(names)}",
            "  else",
            '    case "$command/$place" in',
            *arguments,
            "    esac",
            "  fi",
            '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
            "}",
            "complete -o bashdefault -o default -F _worlddb worlddb",
            "",
        ]
    )


def zsh_script(commands: Sequence[Command]) -> str:
    """Return the script for zsh."""
    shared, *rest = commands
    lines = [
        "#compdef worlddb",
        "# Completion of worlddb for zsh. In ~/.zshrc: source <(worlddb completion zsh)",
        "_worlddb() {",
        "  local state line",
        "  local -a commands",
        "  commands=(",
        *(f"    {shlex.quote(f'{one.name}:{one.told}')}" for one in rest),
        "  )",
        "  _arguments -C \\",
        *(f"    {spec} \\" for spec in _zsh_options(shared)),
        "    '1:command:->command' '*::argument:->argument'",
        "  case $state in",
        "    command) _describe -t commands command commands ;;",
        "    argument)",
        "      case $words[1] in",
    ]
    for command in rest:
        specs = _zsh_options(command)
        for place, words in enumerate(command.arguments, 1):
            action = f"({' '.join(words)})" if words else "_files"
            specs.append(shlex.quote(f"{place}:argument:{action}"))
        lines += [f"        {command.name})", "          _arguments \\"]
        lines += [f"            {spec} \\" for spec in specs]
        lines += ["            '*:argument:_files' ;;"]
    lines += ["      esac ;;", "  esac", "}"]
    lines += ['if [[ $funcstack[1] == _worlddb ]]; then _worlddb "$@"']
    lines += ["else compdef _worlddb worlddb", "fi", ""]
    return "\n".join(lines)


def _zsh_options(command: Command) -> list[str]:
    specs = []
    for option in command.options:
        told = option.told.replace("[", "(").replace("]", ")").replace(":", " -")
        for name in option.names:
            value = ""
            if option.choices:
                value = f":value:({' '.join(option.choices)})"
            elif option.takes_value:
                value = ":value:_files" if option.takes_file else ":value: "
            specs.append(shlex.quote(f"{name}[{told}]{value}"))
    return specs


def fish_script(commands: Sequence[Command]) -> str:
    """Return the script for fish."""
    shared, *rest = commands
    lines = [
        "# Completion of worlddb for fish: worlddb completion fish > "
        "~/.config/fish/completions/worlddb.fish",
    ]
    lines += [
        f"complete -c worlddb -f -n __fish_use_subcommand -a {one.name} -d {_fish(one.told)}"
        for one in rest
    ]
    lines += [f"complete -c worlddb {spec}" for spec in _fish_options(shared)]
    given = {name for option in shared.options for name in option.names}
    for command in rest:
        condition = f"-n {_fish(f'__fish_seen_subcommand_from {command.name}')}"
        own = [option for option in command.options if not given & set(option.names)]
        made = Command(name="", told="", options=tuple(own), arguments=())
        lines += [f"complete -c worlddb {condition} {spec}" for spec in _fish_options(made)]
        words = " ".join(word for one in command.arguments for word in one)
        if words:
            lines.append(f"complete -c worlddb -f {condition} -a {_fish(words)}")
    return "\n".join([*lines, ""])


def _fish_options(command: Command) -> Iterable[str]:
    for option in command.options:
        names = " ".join(
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
        )
        value = ""
        if option.choices:
            value = f" -x -a {_fish(' '.join(option.choices))}"
        elif option.takes_value:
            value = " -r" if option.takes_file else " -x"
        yield f"{names}{value} -d {_fish(option.told)}"


def _fish(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _names(command: Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _valued(command: Command) -> list[str]:
    return [name for option in command.options if option.takes_value for name in option.names]


def _words(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))
