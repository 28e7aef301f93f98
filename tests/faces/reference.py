"""Write docs/reference/command-line.md from the command's own help texts.

    python tests/faces/reference.py

The test beside it fails when the page on disk is not what this would write.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
COLUMNS = "100"

HEAD = """\
# The command line

<!-- Written by tests/faces/reference.py from the help texts; run it instead of editing. -->

`worlddb` works on one store at a time: `--db PATH`, else the file that the environment variable
`WORLDDB_PATH` names, else the `path` of your settings file, else your own store: `memory.db` in
`$XDG_DATA_HOME/worlddb` (`~/.local/share/worlddb` if that is not set), on macOS in
`~/Library/Application Support/worlddb`, on Windows in `%LOCALAPPDATA%\\worlddb`. `--db` and
`--json` may stand before or after the command's name. [Settings](#settings) lists the rest.

Commands that read never make a file, so a typo in a path is an error and not an empty store.
On a terminal, tables are cut to its width and coloured a little; set `NO_COLOR` to do without. In a
pipe they are whole and plain. Tables show the first 12 digits of an id, which is enough to give
back; `--json` prints whole ids. All times are ISO-8601. Control characters in what a node contains
are shown as escapes; `--json` has them as they are.

"""

SETTINGS_HEAD = """\
## Settings

A flag wins over the environment, that over the settings file, that over the default; an empty
variable counts as unset. `worlddb config` shows each value with its origin. The file is TOML with
the names below as keys: the one that `WORLDDB_CONFIG` names, else `config.toml` in
`$XDG_CONFIG_HOME/worlddb` (`~/.config/worlddb`), on macOS in `~/Library/Application
Support/worlddb`, on Windows in `%APPDATA%\\worlddb`. A key that is no setting is refused. Relative
paths in it start from its own folder. Keep it to yourself (`chmod 600`) if it holds a secret.

```toml
user_id = "ada"
embedder = "arctic-embed-s"
allowed_hosts = ["memory.lan"]
```

| key | variable | default | what it is |
|---|---|---|---|
"""

SETTINGS = {
    "path": "the store; the flag is `--db`",
    "user_id": "whose memory it is where a call names no scope",
    "token": "secret: opens everything over HTTP",
    "url": "the server that hooks talk to, if not the one that runs on the store",
    "hook_timeout_s": "seconds after which a hook gives up",
    "tokens_file": "tokens and the scopes they open",
    "host": "where `serve` listens",
    "port": "and on which port",
    "allowed_hosts": "names by which clients may call",
    "allowed_origins": "origins of web pages that may call",
    "stores": "a folder with one store for each tenant, instead of `path`",
    "stores_keys": "a folder with one key for each tenant, made with its store",
    "stores_open": "how many stores of tenants are open at once",
    "workers": "processes that answer requests and read, beside the one that writes",
    "trusted_proxies": "addresses of proxies whose `X-Forwarded-For` is believed",
    "oauth_issuer": "the authorisation server at which people sign in, as its tokens name it",
    "oauth_resource": "the URL by which clients reach this server; by default its own address",
    "oauth_audience": "what `aud` of a token may name; by default `oauth_resource`",
    "oauth_jwks_url": "where the issuer's keys are; by default its metadata tell",
    "oauth_roles": "the scope of OAuth for each role, such as `read=memory.read`",
    "oauth_bounds": "the claim for each kind of scope; by default `user_id=sub`",
    "oauth_tenant_claim": "the claim that names the tenant, with `stores`",
    "oauth_per_minute": "how many requests a person who signs in may make in a minute",
    "embedder": "see `worlddb models`; by default the store's own",
    "embedder_key": "secret: for an embedder behind an endpoint",
    "models_dir": "where installed models lie",
    "llm_provider": "openai, anthropic, ollama, vllm or llamacpp",
    "llm_base_url": "where it is, if not in the usual place",
    "llm_model": "the model's name",
    "llm_api_key": "secret: its key",
    "log_level": "debug, info, warning or error",
    "extractor": "what reads texts: rules, verbatim or llm",
    "verify_reads": "whether each node that is read is compared with its id",
    "audit_reads": "whether it is recorded who recalls what; see `worlddb reads`",
    "key": "secret: the key of an encrypted store; give one of this and the next two",
    "key_file": "the file with that key; see [encryption](../encryption.md)",
    "keyring": "the name of that key in the keyring of the system: service/user",
    "consolidate_every_s": "seconds between consolidations while serving",
    "edge_types": "edge types to declare: `[[edge_types]]` tables; in the variable, a JSON list",
    "tools": "which MCP tools are offered: memory (the nine) or graph (those and more)",
}

KEEPING = """\
## Backups and exports

A **backup** is a store like any other and can be opened: `--db backup.db`, or
`worlddb.open("backup.db")`. It is taken while others read and write, and appears under its name
only when it is complete. `restore` puts it where the old store was; end the processes that use that
first. Do not move it there by hand: `-wal` and `-shm` files that a crash left behind belong to the
old store, and would be written into the new one.

An **export** is text: one JSON object per line, commit by commit, readable without WorldDB and
compressed if its name ends in `.gz`. Importing it into a new store gives the same ids, both clocks,
the same commit hashes and the same root state; a commit that does not is refused.

```console
$ worlddb backup monday.db
$ worlddb check --db monday.db
$ worlddb restore monday.db --force
$ worlddb export monday.jsonl.gz
$ worlddb import monday.jsonl.gz --db copy.db
```

"""


def page() -> str:
    """Return the page as it should be."""
    from worlddb.faces.cli.command_line import command_names
    from worlddb.faces.cli.command_options import MEANINGS

    # What the width of help texts and the names of folders would otherwise depend on.
    os.environ["COLUMNS"] = COLUMNS
    parts = [HEAD, _section("worlddb", [])]
    parts += [_section(name, [name]) for name in command_names()]
    parts += [_settings(), KEEPING]
    parts.append("## Exit codes\n\nErrors are one line on stderr, `worlddb: message`.\n\n")
    parts.append("| code | meaning |\n|---|---|\n")
    parts += [f"| {code} | {meaning} |\n" for code, meaning in MEANINGS.items()]
    return "".join(parts)


def _settings() -> str:
    from worlddb.faces.face_settings import KINDS, Settings

    assert SETTINGS.keys() == KINDS.keys()
    usual = Settings(path="`memory.db`")
    rows = [
        f"| `{name}` | `{kind.variable}` | {getattr(usual, name) or ''} | {SETTINGS[name]} |\n"
        for name, kind in KINDS.items()
    ]
    return SETTINGS_HEAD + "".join(rows) + "\n"


def _section(title: str, arguments: list[str]) -> str:
    import contextlib
    import io

    from worlddb.faces.cli import run

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert run([*arguments, "--help"]) == 0
    return f"## {title}\n\n```text\n{text.getvalue().rstrip()}\n```\n\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
