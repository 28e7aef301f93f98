"""Ledger: the folder of a run. What is in it is done; the next run goes on from there.

    run.json          the settings, digests of the file that was asked and of the code, which
                      questions were chosen, and of how many the report is
    questions.jsonl   one line per question, written the moment it is done
    calls.jsonl       every reply of a model (see `calls`)
    report.md, report.html

A question whose line has an `error` counts as not done. A folder whose settings or code differ is
refused, so that no table mixes two runs; which and how many questions are asked may differ.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from worlddb import __version__
from worlddb.errors import ConflictError, FormatError
from worlddb.evaluate.code import code_digest
from worlddb.evaluate.lines import append_line, read_lines, write_lines
from worlddb.evaluate.settings import RunSettings

RUN, QUESTIONS, CALLS, REPORT = "run.json", "questions.jsonl", "calls.jsonl", "report.md"
CHUNK_BYTES = 1 << 20
CODE = ("worlddb", "code")
MAY_DIFFER = ("data", "questions", "chosen", "reported")
"""A file may be moved, and a run may be extended."""
ELSEWHERE = (
    f"choose another --out ({CALLS}, if there is one, can be copied there: what was asked in the "
    "same words of the same model, with the same limit, is not asked again)"
)

Record = dict[str, Any]


class Ledger:
    """The records of a run: in a folder, or only in memory if there is none."""

    def __init__(self, folder: str | None, settings: RunSettings, data: str) -> None:
        """Read what the folder of a run holds; nothing is written before `begin`.

        Raises:
            ConflictError: the folder holds another run.
            FormatError: what it holds is damaged.
            OSError: it cannot be read.
        """
        self.folder = Path(folder) if folder is not None else None
        self.run = {
            "data": Path(data).name,
            "sha256": digest(data) if folder is not None else "",
            "worlddb": __version__,
            "code": code_digest() if folder is not None else "",
            **settings.to_dict(),
        }
        self.done: dict[str, Record] = {}
        self.failed: dict[str, Record] = {}
        self._reported = 0
        if self.folder is not None:
            self._check(self.folder / RUN)
            for record in read_lines(self.folder / QUESTIONS):
                self._note(record)

    def is_fuller(self, ids: Sequence[str]) -> bool:
        """Return whether the folder has a report already, and of more questions than these."""
        there = self.folder is not None and (self.folder / REPORT).exists()
        return there and self._reported > len(ids)

    def begin(self, questions: str, ids: Sequence[str]) -> None:
        """Write down what this run is, and which questions it asks this time.

        Of fewer than the folder has a report of already, nothing is written down: `run.json` goes
        with the report.

        Raises:
            OSError: the folder cannot be written.
        """
        names = "\n".join(ids).encode("utf-8", "replace")
        self.run["questions"] = questions
        self.run["chosen"] = {"count": len(ids), "sha256": sha256(names).hexdigest()}
        if self.folder is not None and not self.is_fuller(ids):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._write_run()

    def report_written(self, ids: Sequence[str]) -> None:
        """Write down of how many questions the report is."""
        self._reported = len(ids)
        self._write_run()

    def _write_run(self) -> None:
        if self.folder is not None:
            write_lines(self.folder / RUN, [self.run | {"reported": self._reported}])

    def add(self, record: Record) -> None:
        """Keep what came out of a question."""
        self._note(record)
        if self.folder is not None:
            append_line(self.folder / QUESTIONS, record)

    def finish(self, ids: Sequence[str]) -> list[Record]:
        """Return the records of a plan in its order; put the file into that order, too."""
        every = self.done | self.failed
        planned = [every[name] for name in ids if name in every]
        if self.folder is not None:
            rest = every.keys() - set(ids)
            others = [record for name, record in every.items() if name in rest]
            write_lines(self.folder / QUESTIONS, [*planned, *others])
        return [record for record in planned if "error" not in record]

    def _note(self, record: Record) -> None:
        name = record.get("id")
        if not isinstance(name, str):
            raise FormatError(f"{QUESTIONS}: a line has no id; choose another --out")
        if "error" in record:
            if name not in self.done:
                self.failed[name] = record
        else:
            self.done[name] = record
            self.failed.pop(name, None)

    def _check(self, path: Path) -> None:
        if not path.exists():
            if (path.parent / QUESTIONS).exists():
                raise FormatError(
                    f"{path.parent}: has {QUESTIONS} without {RUN}, so nothing says by which "
                    "settings they were made; choose another --out"
                )
            return
        try:
            before = json.loads(path.read_text("utf-8"))
            names = [name for name in before | self.run if before.get(name) != self.run.get(name)]
            names = [name for name in names if name not in MAY_DIFFER]
            self._reported = int(before.get("reported", 0))
        except (ValueError, TypeError, AttributeError):
            raise FormatError(f"{path}: is no run; move it away, or choose another --out") from None
        if names and set(names) <= set(CODE):
            raise ConflictError(
                f"{path.parent}: holds a run that another state of WorldDB's code made, whose "
                f"figures may be others; {ELSEWHERE}"
            )
        if names:
            told = [one for name in names for one in _changes(name, before, self.run)]
            raise ConflictError(
                f"{path.parent}: holds a run with other settings ({'; '.join(told[:3])}); "
                f"{ELSEWHERE}"
            )


def _changes(name: str, before: Record, now: Record) -> Iterator[str]:
    """Yield how a setting differs; of one that has parts, those that do."""
    old, new = before.get(name), now.get(name)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        yield f"{name} was {old!r:.60}, now {new!r:.60}"
        return
    for part in old | new:
        if old.get(part) != new.get(part):
            yield f"{name} of {part} was {old.get(part)!r:.60}, now {new.get(part)!r:.60}"


def digest(path: str) -> str:
    """Return what tells a file from another by its bytes."""
    status = os.stat(path)
    return _digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _digest(path: str, size: int, changed_ns: int) -> str:
    hasher = sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()
