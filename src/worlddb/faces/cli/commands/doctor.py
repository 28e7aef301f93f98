"""`worlddb doctor`: examine this installation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from worlddb.faces.cli.command_options import EMBEDDER, command, wants_json
from worlddb.faces.cli.exit_codes import FOUND, OK
from worlddb.faces.cli.terminal import one_line, paint, print_json

if TYPE_CHECKING:
    from worlddb.faces.diagnosis import DoctorFinding

COLOURS = {"ok": "green", "warn": "bold", "fail": "red"}
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


@command("doctor", EMBEDDER)
def run(args: argparse.Namespace) -> int:
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
