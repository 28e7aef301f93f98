"""Start-up: what `worlddb --help` and `import worlddb` load, and what they do not."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import worlddb
from worlddb.faces.cli import command_line as cli
from worlddb.faces.cli import commands

from .command import environment

HEAVY = {
    "apsw",
    "blake3",
    "numpy",
    "worlddb.world_db",
    "worlddb.store",
    "worlddb.view",
    "worlddb.write",
}
HEAVY |= {
    "mcp",
    "starlette",
    "pydantic",
    "tomllib",
    "worlddb.memory",
    "worlddb.faces.face_settings",
}


def loaded_by(program: str) -> set[str]:
    """Return the modules that are loaded once `program` has run in a fresh interpreter."""
    tail = "\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program + tail],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_help_loads_neither_the_engine_nor_what_it_stands_on(arguments: list[str]) -> None:
    loaded = loaded_by(f"from worlddb.faces.cli import run; run({arguments})")
    assert "worlddb.faces.cli.commands.check" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    "arguments", [["check", "--help"], ["--db", "write", "check", "--help"], ["--json", "check"]]
)
def test_only_the_file_of_the_invoked_command_is_imported(arguments: list[str]) -> None:
    loaded = loaded_by(f"from worlddb.faces.cli import run; run({arguments})")
    inside = {name for name in loaded if name.startswith("worlddb.faces.cli.commands.")}
    assert inside == {"worlddb.faces.cli.commands.check"}


def test_the_declared_calls_load_next_to_nothing() -> None:
    loaded = loaded_by("import worlddb.faces.calls")
    ours = {name for name in loaded if name.startswith("worlddb")}
    parts = ("calls", "call_parts", "governance_calls", "graph_calls", "version_calls")
    assert ours == {"worlddb", "worlddb.faces", *(f"worlddb.faces.{part}" for part in parts)}
    assert not loaded & (HEAVY | {"dataclasses", "argparse", "json"})


def test_an_mcp_server_is_ready_before_the_engine_is_loaded() -> None:
    loaded = loaded_by(
        "from worlddb.faces.mcp.stdio_transport import LateMemory, make_server\n"
        "make_server(LateMemory(lambda: 1 / 0), tools='memory')"
    )
    assert "worlddb.faces.mcp.memory_tools" in loaded
    assert not loaded & {"apsw", "numpy", "worlddb.engine", "worlddb.memory", "worlddb.store"}


def test_importing_the_package_loads_nothing_of_it() -> None:
    assert {name for name in loaded_by("import worlddb") if name.startswith("worlddb")} == {
        "worlddb"
    }


def test_verifying_a_proof_needs_no_storage_engine() -> None:
    loaded = loaded_by("import worlddb; worlddb.verify_proof({}, '')")
    assert "apsw" not in loaded


def test_every_public_name_can_be_had_from_the_package() -> None:
    for name in worlddb.__all__:
        assert getattr(worlddb, name) is not None
    assert dir(worlddb) == sorted(worlddb.__all__)
    names: dict[str, object] = {}
    exec("from worlddb import *", names)
    assert {name for name in names if name != "__builtins__"} == set(worlddb.__all__)
    assert names["open"] is worlddb.open
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = worlddb.nonsense  # type: ignore[attr-defined]


def test_every_command_file_is_listed_and_adds_its_commands() -> None:
    assert commands.__file__ is not None
    files = {path.stem for path in Path(commands.__file__).parent.glob("*.py")} - {"__init__"}
    assert set(cli.COMMANDS.values()) == files
    parser = cli.make_parser()
    for name, file in cli.COMMANDS.items():
        arguments = {"read": ["ab"], "diff": ["0"], "backup": ["x"], "import": ["x"]} | {
            "restore": ["x"],
            "copy": ["x", "y"],
            "recall": ["x"],
            "extract": ["--pending"],
            "eval": ["retrieval", "--data", "x"],
            "test": ["x"],
            "amend": ["ab", "x"],
            "merge": ["x"],
            "erase": ["ab"],
            "setup": ["cursor"],
            "hook": ["Stop"],
            "completion": ["bash"],
            "query": ["text x"],
        }
        args = parser.parse_args([name, *arguments.get(name, [])])
        assert args.command == name
        if not isinstance(args.run, partial):  # Else the command is generated from its call.
            assert args.run.__module__ == f"worlddb.faces.cli.commands.{file}"
