"""`worlddb config`, `doctor`, `models`, `completion`, `setup`, `hook`: this installation."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from worlddb.errors import FormatError, InvalidInputError, ProviderError
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    FILE_COMPLETION,
    FOUND,
    OK,
    action_of,
    command,
    flag,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    Progress,
    amount,
    one_line,
    paint,
    print_hint,
    print_json,
    print_table,
)
from worlddb.faces.hooks.client_dialects import DIALECTS
from worlddb.model.text_safety import visible

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.faces.clients.client_catalog import McpClient
    from worlddb.faces.clients.client_file import ClientEdit
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
    from worlddb.embed import embedder

    folder = embedder.model_folder()
    return {
        "name": "wordllama",
        "model_id": embedder.WORDLLAMA_ID,
        "dim": embedder.WORDLLAMA_DIM,
        "bytes": embedder.WORDLLAMA_BYTES,
        "licence": embedder.WORDLLAMA_LICENCE,
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
    cells = value if isinstance(value, list) else [value]
    return ", ".join(json.dumps(one) if isinstance(one, dict) else str(one) for one in cells)


# `worlddb hook`: answer an event of a coding client.


@command(
    "hook EVENT",
    option("event", "EVENT", "the event as the client names it, such as UserPromptSubmit"),
    option(
        "--client",
        "NAME",
        f"who sends it: {', '.join(DIALECTS)} (default: claude-code)",
        choices=tuple(DIALECTS),
        default="claude-code",
    ),
)
def run_hook(args: argparse.Namespace) -> int:
    """Answer an event of a coding client.

    Read a client's hook JSON on stdin and answer it in the client's format: what is
    remembered about a prompt goes to the model, what was said is captured in the
    background. It never fails, blocks for a second at most, and asks no model.
    'worlddb setup CLIENT --hooks' lets a client call it. WORLDDB_HOOKS=off, or the
    prompt 'worlddb off', switches it off; see docs/hooks.md.

    Examples:
      echo '{"prompt": "How do we deploy?"}' | worlddb hook UserPromptSubmit  # try it
      worlddb hook Stop --client codex < event.json                           # as Codex calls it
    """
    from worlddb.faces.hooks.hook_command import answer

    flags = {name: getattr(args, name, None) for name in ("db", "key_file")}
    return answer(args.event, args.client, **flags)


# `worlddb setup`: connect an MCP client to this memory, let it call hooks, or undo both.

NAMES = (
    "claude",
    "claude-code",
    "cursor",
    "vscode",
    "codex",
    "windsurf",
    "zed",
    "gemini",
    "copilot",
    "opencode",
    "cline",
    "goose",
)
CARRIED = ("path", "key_file", "keyring", "user_id", "embedder", "models_dir")
"""Settings that are written into the entry when they come from this shell; never secrets."""


@command(
    "setup CLIENT",
    option("client", "CLIENT", ", ".join(NAMES), choices=NAMES, nargs="?"),
    flag("--hooks", "let the client capture and inject by hooks; see docs/hooks.md"),
    flag("--remove", "take out what setup put in: of CLIENT, or of all clients"),
    option("--user-id", "ID", "the user whose memory it is where a call names none"),
    option("--http", "URL", "the address of a running 'worlddb serve'"),
    option("--token", "TEXT", "for --http (default: $WORLDDB_TOKEN)"),
    flag("--project", "use the settings of the current folder"),
    flag("--write", "write the client's settings"),
    flag("--dry-run", "show what --write would change"),
)
def run_setup(args: argparse.Namespace) -> int:
    """Connect Claude, Cursor, VS Code, Codex and others.

    Print the entry that connects an MCP client to this memory, or write it into the
    client's settings. --write keeps a backup beside the file, changes only our own
    entry, and refuses a file that it cannot parse. Store, user and embedder from --db
    or your environment go into the entry. Restart the client afterwards.
    --remove takes out our entry and our hooks at once, and nothing else.

    Examples:
      worlddb setup cursor                                       # print it, to paste
      worlddb setup claude --dry-run                             # what would change in Claude's settings
      worlddb setup claude --write                               # do it
      worlddb setup claude-code --project --write                # for this folder only (.mcp.json)
      worlddb setup vscode --http http://127.0.0.1:8765 --write  # a running server
      worlddb setup claude-code --hooks --write                  # capture and inject by hooks
      worlddb setup --remove --dry-run                           # what would be taken out
    """  # noqa: E501
    if args.remove:
        return _remove(args)
    if args.client is None:
        raise InvalidInputError(f"setup: give a CLIENT: {', '.join(NAMES)}")
    if args.hooks:
        return _set_hooks(args)
    from worlddb.faces.clients.client_catalog import client_named
    from worlddb.faces.clients.client_file import edit_for
    from worlddb.faces.face_settings import SERVER_REMEDY, is_installed

    client = client_named(args.client)
    entry = _entry(args, client)
    if args.http is None and not is_installed():
        print(f"'worlddb mcp' is not installed yet; run: {SERVER_REMEDY}", file=sys.stderr)
    path = client.path(in_project=args.project)
    if not args.write and not args.dry_run:
        _print_snippet(args, client, entry, path)
        return 0
    return _apply(args, client.name, client.title, edit_for(client, path, entry), "connected")


def _apply(args: argparse.Namespace, name: str, title: str, edit: ClientEdit, what: str) -> int:
    """Write an edit, unless only shown, and report it."""
    from worlddb.faces.clients.client_file import apply_edit

    backup = apply_edit(edit) if not args.dry_run and edit.changes else None
    if wants_json(args):
        written = edit.changes and not args.dry_run
        found = {"client": name, "path": edit.path, "entry": dict(edit.entry)}
        print_json(found | {"changed": edit.changes, "written": written, "backup": backup})
    else:
        _print_result(args, title, edit, backup, what)
    return 0


def _set_hooks(args: argparse.Namespace) -> int:
    from worlddb.faces.clients import client_file
    from worlddb.faces.clients.client_catalog import launch_command

    if args.http is not None or args.token is not None or args.user_id is not None:
        raise InvalidInputError(
            "setup --hooks: a hook finds a running server by itself; set WORLDDB_URL, "
            "WORLDDB_TOKEN and WORLDDB_SCOPE in the client's environment instead"
        )
    client = client_file.hook_client(args.client)
    given = ("--db", getattr(args, "db", None)), ("--key-file", getattr(args, "key_file", None))
    flags = [word for flag, path in given if path for word in (flag, _named(path, args.project))]
    commands = client_file.hook_commands(client, launch_command(in_project=args.project), *flags)
    path = client.path(in_project=args.project)
    edit = client_file.hooks_edit(client, path, commands)
    if client.note:
        print_hint(client.note)
    if not args.write and not args.dry_run:
        print_hint(f"for {client.title}, in {one_line(path)}:")
        print_json({"hooks": {event: [entry] for event, entry in edit.entry.items()}})
        print_hint(f"'{_again(args)}' puts it there")
        print_hint(f"the same as a plug-in: {one_line(client_file.plugin_folder(client))}")
        return 0
    done = _apply(args, client.name, client.title, edit, "set up with hooks")
    if args.write and not wants_json(args):
        _suggest_tools(args)
    return done


def _suggest_tools(args: argparse.Namespace) -> None:
    """Say how the client gets the tools as well, unless it has them."""
    from worlddb.faces.clients.client_catalog import SERVER, client_named
    from worlddb.faces.clients.client_file import servers_in

    client = client_named(args.client)
    in_project = args.project and client.project is not None
    with suppress(FormatError):  # A file that setup would refuse to change; it says so then.
        if SERVER in (servers_in(client, client.path(in_project=in_project)) or {}):
            return
    told = f"worlddb setup {args.client}{' --project' if in_project else ''} --write"
    print_hint(f"hooks are not tools; to let the model search and write by itself, too: {told}")


def _remove(args: argparse.Namespace) -> int:
    done = [_apply(args, *one) for one in _removals(args, args.project)]
    if not done and not wants_json(args):
        print("nothing of ours is there")
    # Others may share the settings of a project, so they are only named.
    more = {} if args.project else {edit.path: "" for *_, edit, _ in _removals(args, True)}
    if more:
        print_hint(f"in this project, too: {one_line(', '.join(more))}; to take it out there, too:")
        print_hint("worlddb setup --remove --project")
    return 0


def _removals(
    args: argparse.Namespace, in_project: bool
) -> Iterator[tuple[str, str, ClientEdit, str]]:
    """Yield the client, its title, the edit and what it does, for each entry of ours.

    A file may hold both the tools and the hooks, so the second is looked for when the first is out.
    """
    from worlddb.faces.clients.client_catalog import CLIENTS
    from worlddb.faces.clients.client_file import HOOK_CLIENTS, hooks_removal, removal_from

    for name in NAMES if args.client is None else [args.client]:
        client, caller = CLIENTS.get(name), HOOK_CLIENTS.get(name)
        if caller is not None:
            edit = hooks_removal(caller, caller.path(in_project=in_project))
            if edit is not None:
                yield name, caller.title, edit, "without our hooks"
        if client is not None and not (in_project and client.project is None):
            edit = removal_from(client, client.path(in_project=in_project))
            if edit is not None:
                yield name, client.title, edit, "disconnected"


def _entry(args: argparse.Namespace, client: McpClient) -> dict[str, Any]:
    from worlddb.faces.clients.client_catalog import http_entry, launch_command, stdio_entry
    from worlddb.faces.face_settings import settings_from

    if args.http is not None:
        if args.user_id or getattr(args, "db", None):
            raise InvalidInputError("setup --http: a running server has its own store and user")
        return http_entry(client, args.http, settings_from(args).token, in_project=args.project)
    if args.token is not None:
        raise InvalidInputError("setup --token: needs --http; over stdio there is no token")
    return stdio_entry(client, launch_command(in_project=args.project), _variables(args))


def _variables(args: argparse.Namespace) -> dict[str, str]:
    """Return the variables for the entry: a client starts the server without this shell's.

    In the settings of a project, which are shared, no path leads out of its folder: what this
    shell's environment says is for this machine alone.

    Raises:
        InvalidInputError: an option names such a path.
    """
    from worlddb.faces import face_settings
    from worlddb.faces.user_paths import is_file

    settings = face_settings.settings_from(args)
    file = (
        _path(face_settings.config_path(), args.project)
        if os.environ.get(face_settings.FILE_VARIABLE)
        else None
    )
    env = {} if file is None else {face_settings.FILE_VARIABLE: file}
    for one in face_settings.origins(args):
        if one.name in CARRIED and one.origin.startswith(("flag", "environment")):
            value = str(getattr(settings, one.name))
            is_path = face_settings.KINDS[one.name].is_path and is_file(value)
            path_of = _named if one.origin.startswith("flag") else _path
            told = path_of(value, args.project) if is_path else value
            if told is not None:
                env[face_settings.KINDS[one.name].variable] = told
    return env


def _named(value: str, in_project: bool) -> str:
    """Return a path for an entry that an option names.

    Raises:
        InvalidInputError: it leads out of the project.
    """
    found = _path(value, in_project)
    if found is None:
        raise InvalidInputError(
            f"{value}: is outside the project, and others who use its settings have no such path; "
            "leave it out, or leave --project out"
        )
    return found


def _path(value: str, in_project: bool) -> str | None:
    """Return a path for an entry: absolute, or from the folder of a project; None outside it."""
    whole = os.path.abspath(value)
    if not in_project:
        return whole
    inside = os.path.relpath(whole)
    return None if inside.split(os.sep)[0] == os.pardir else inside


def _print_snippet(
    args: argparse.Namespace, client: McpClient, entry: dict[str, Any], path: str
) -> None:
    import json

    from worlddb.faces.clients.client_catalog import SERVER
    from worlddb.faces.clients.client_file import set_toml
    from worlddb.faces.clients.settings_text import set_yaml

    whole = {client.key: {SERVER: entry}}
    if wants_json(args):
        print_json({"client": client.name, "path": path, "entry": entry, "settings": whole})
        return
    print(f"for {client.title}, in {one_line(path)}:", file=sys.stderr)
    if client.format != "json":
        setter = set_toml if client.format == "toml" else set_yaml
        print(visible(setter("", (client.key, SERVER), entry)), end="")
    else:
        print(json.dumps(whole, indent=2))
    print_hint(f"'{_again(args)}' puts it there for you")


def _again(args: argparse.Namespace) -> str:
    """Return the command that was given, with --write; the token is not shown."""
    words = [args.client]
    for name in ("db", "key_file", "user_id", "http", "hooks", "project"):
        if given := getattr(args, name, None):
            words += [f"--{name.replace('_', '-')}", *([] if given is True else [given])]
    token = " --token …" if args.token else ""
    return f"worlddb setup {shlex.join([*words, '--write'])}{token}"


def _print_result(
    args: argparse.Namespace, title: str, edit: ClientEdit, backup: str | None, what: str
) -> None:
    path = one_line(edit.path)
    if not edit.changes:
        print(f"{title} is already {what}: {path}")
    elif args.dry_run:
        print(visible(edit.diff()), end="")
    else:
        kept = f"; backup: {one_line(backup)}" if backup else ""
        print(f"{title} is {what} now: {path}{kept}")
        print(f"restart {title}, so that it reads its settings again", file=sys.stderr)
