"""Run folder: the files of a run. Recorded questions are done; the next run continues after them.

    run.json          the settings, digests of the benchmark file and of the code, the chosen
                      questions, and how many of them the report covers
    questions.jsonl   one line per question, written as soon as it is done
    calls.jsonl       every reply of a model (`ReplyCache`)
    report.md, report.html
    run.lock          held while a run uses the folder

A question whose line has an `error` is not done. A folder with other settings or other code is
refused, so no table mixes two runs; the choice of questions may differ. Files of JSON lines survive
a kill: each line is written at once, and an incomplete last line is cut off at the next opening.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from blake3 import blake3

from worlddb import Chat, ChatSettings, __version__
from worlddb.errors import ConflictError, FormatError, ProviderError
from worlddb.evaluate.benchmark_cases import RunSettings, tokens_of

try:
    import fcntl
except ImportError:  # pragma: no cover
    # Windows has none; there, two runs in one folder are not prevented.
    fcntl = None  # type: ignore[assignment]

RUN, QUESTIONS, CALLS, REPORT = "run.json", "questions.jsonl", "calls.jsonl", "report.md"
LOCK = "run.lock"
PACKAGE = Path(__file__).parents[1]
KINDS = (".py", ".npy", ".json", ".txt")
"""Files that decide figures: modules, and the tables, numbers and word lists beside them."""
ASIDE = "faces"
"""A face only hands over what was asked for, which the settings of a run say already."""
CODE = ("worlddb", "code")
MAY_DIFFER = ("data", "questions", "chosen", "reported")
"""A file may be moved, and a run may be extended."""
ELSEWHERE = (
    f"choose another --out ({CALLS}, if there is one, can be copied there: what was asked in the "
    "same words of the same model, with the same limit, is not asked again)"
)

Record = dict[str, Any]


class RunFolder:
    """The records of a run, in a folder or, without one, in memory."""

    def __init__(self, folder: str | None, settings: RunSettings, data: str) -> None:
        """Read the folder of a run; nothing is written before `begin`."""
        self.path = Path(folder) if folder is not None else None
        self.run = {
            "data": Path(data).name,
            "sha256": file_digest(data) if folder is not None else "",
            "worlddb": __version__,
            "code": code_digest() if folder is not None else "",
            **settings.to_dict(),
        }
        self.done: dict[str, Record] = {}
        self.failed: dict[str, Record] = {}
        self._reported = 0
        if self.path is not None:
            self._check(self.path / RUN)
            for record in read_lines(self.path / QUESTIONS):
                self._note(record)

    def is_fuller(self, ids: Sequence[str]) -> bool:
        """Return whether the folder has a report that covers more questions than these."""
        there = self.path is not None and (self.path / REPORT).exists()
        return there and self._reported > len(ids)

    def begin(self, questions: str, ids: Sequence[str]) -> None:
        """Record the settings of this run, and its questions.

        Nothing is written if the folder has a report of more questions: `run.json` describes the
        report.
        """
        names = "\n".join(ids).encode("utf-8", "replace")
        self.run["questions"] = questions
        self.run["chosen"] = {"count": len(ids), "sha256": hashlib.sha256(names).hexdigest()}
        if self.path is not None and not self.is_fuller(ids):
            self.path.mkdir(parents=True, exist_ok=True)
            self._write_run()

    def report_written(self, ids: Sequence[str]) -> None:
        """Record how many questions the report covers."""
        self._reported = len(ids)
        self._write_run()

    def _write_run(self) -> None:
        if self.path is not None:
            write_lines(self.path / RUN, [self.run | {"reported": self._reported}])

    def add(self, record: Record) -> None:
        """Save the record of a question."""
        self._note(record)
        if self.path is not None:
            append_line(self.path / QUESTIONS, record)

    def finish(self, ids: Sequence[str]) -> list[Record]:
        """Return the records of a plan in its order, and sort the file in that order."""
        every = self.done | self.failed
        planned = [every[name] for name in ids if name in every]
        if self.path is not None:
            rest = every.keys() - set(ids)
            others = [record for name, record in every.items() if name in rest]
            write_lines(self.path / QUESTIONS, [*planned, *others])
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
            raise FormatError(
                f"{path}: is not a run; move it away, or choose another --out"
            ) from None
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
    """Yield the differences of a setting; for a composite one, of its parts."""
    old, new = before.get(name), now.get(name)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        yield f"{name} was {old!r:.60}, now {new!r:.60}"
        return
    for part in old | new:
        if old.get(part) != new.get(part):
            yield f"{name} of {part} was {old.get(part)!r:.60}, now {new.get(part)!r:.60}"


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file's bytes."""
    status = os.stat(path)
    return _digest(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _digest(path: str, size: int, changed_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return the digest of the running engine, computed once."""
    return package_digest(PACKAGE)


def package_digest(package: Path) -> str:
    """Return a digest over the names and bytes of a package's files."""
    hasher = blake3()
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*")}
    for name in sorted(files):
        if not name.endswith(KINDS) or name.startswith(f"{ASIDE}/"):
            continue
        body = files[name].read_bytes()
        # The length separates each file from the next.
        hasher.update(f"{name}\0{len(body)}\0".encode())
        hasher.update(body)
    return hasher.hexdigest()


@contextmanager
def locked_folder(folder: str | None) -> Iterator[None]:
    """Lock a folder for the length of the block; remove the folder if it stays empty.

    The operating system releases the lock after a crash.
    """
    if folder is None:
        yield
        return
    path = Path(folder)
    made = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        file = _locked(path / LOCK)
        try:
            yield
        finally:
            # Removed while locked, so no other process can have locked this file.
            (path / LOCK).unlink(missing_ok=True)
            file.close()
    finally:
        with suppress(OSError):
            for one in made:
                one.rmdir()


def _locked(path: Path) -> IO[bytes]:
    while True:
        file = path.open("ab")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BlockingIOError:
            file.close()
            raise ConflictError(
                f"{path.parent}: another run is at work in this folder; wait for it, or choose "
                "another --out"
            ) from None
        except BaseException:
            file.close()
            raise
        # The last owner removed the file in the meantime, so this lock is worthless.
        file.close()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, none if it is missing; cut off an incomplete last line."""
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return
    with file:
        good = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            if not isinstance(value, dict):
                raise FormatError(f"{path}: line {number} is not a JSON object; move the file away")
            good += len(line)
            yield value
        file.truncate(good)


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append an object to a file as one line."""
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    # One write in append mode, so lines of other threads do not mix.
    with path.open("ab", buffering=0) as file:
        file.write(data)


def write_lines(path: Path, values: Iterable[dict[str, Any]]) -> None:
    """Replace a file; after a kill the old file is still there."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8", errors="replace") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


# Reply cache: every reply of a model is kept, so that no run pays for it twice.
#
#     messages ──key──▶ calls.jsonl ──found──▶ the reply     ──not found──▶ endpoint ──▶ calls.jsonl
#
# A continued run, or one with another knob, sends new requests only. Costs are counted by thread:
# `counting` yields the requests of its thread in the block.

Messages = Sequence[Mapping[str, str]]


class UnansweredError(ProviderError):
    """No reply arrived: the endpoint failed, or the run is being stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReply:
    """The reply of a model; `is_cut` if it reached its token limit."""

    text: str
    is_cut: bool
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Spent:
    """Requests, and tokens in and out, by role.

    `again` counts replies from the cache, `cut` those that reached their token limit.
    """

    requests: int = 0
    again: int = 0
    cut: int = 0
    tokens: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, role: str, reply: CachedReply, *, again: bool) -> None:
        """Count a reply."""
        self.requests += 1
        self.again += again
        self.cut += reply.is_cut
        self.tokens[role][0] += reply.input_tokens
        self.tokens[role][1] += reply.output_tokens


class ReplyCache:
    """The replies of a run, kept in a file or, without one, in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._counting = threading.local()
        self._replies: dict[str, CachedReply] = {}
        self._turns: dict[str, threading.Lock] = {}
        self.kept: Counter[str] = Counter()
        """How many replies of each role there were before this run."""
        self.total = Spent()
        self.is_stopped = False
        for line in read_lines(path) if path is not None else ():
            key, role = line.pop("key"), line.pop("role")
            self._replies[key] = reply = CachedReply(**line)
            self.kept[role] += 1
            self.total.add(role, reply, again=True)

    def turn(self, key: str) -> threading.Lock:
        """Return the lock of a key, so that only one thread asks for it."""
        with self._lock:
            return self._turns.setdefault(key, threading.Lock())

    def find(self, key: str, role: str) -> CachedReply | None:
        """Return a reply from the cache."""
        if self.is_stopped:
            raise UnansweredError("the run was stopped")
        with self._lock:
            reply = self._replies.get(key)
        if reply is not None:
            self._count(role, reply, again=True)
        return reply

    def keep(self, key: str, role: str, reply: CachedReply) -> None:
        """Save a reply in the cache."""
        with self._lock:
            if key not in self._replies:
                self._replies[key] = reply
                self.total.add(role, reply, again=False)
                if self._path is not None:
                    append_line(self._path, {"key": key, "role": role, **asdict(reply)})
        self._count(role, reply, again=False)

    @contextmanager
    def counting(self) -> Iterator[Spent]:
        """Count the requests of this thread for the length of the block."""
        before = getattr(self._counting, "spent", None)
        self._counting.spent = spent = Spent()
        try:
            yield spent
        finally:
            self._counting.spent = before

    def _count(self, role: str, reply: CachedReply, *, again: bool) -> None:
        spent: Spent | None = getattr(self._counting, "spent", None)
        if spent is not None:
            spent.add(role, reply, again=again)


class CachedChat(Chat):
    """A model in a role, with its replies cached."""

    def __init__(self, settings: ChatSettings, role: str, calls: ReplyCache) -> None:
        super().__init__(settings)
        self.role = role
        self.calls = calls

    def ask(self, messages: Messages, *, schema: Any = None) -> Any:
        """Return the reply, cached or new; an empty reply counts as a reply.

        Raises:
            InvalidInputError: messages without a role and a content.
            UnansweredError: no reply arrived.
            ProviderError: an extractor said nothing.
        """
        key = self._key(messages, schema)
        with self.calls.turn(key):
            reply = self.calls.find(key, self.role)
            if reply is None:
                reply = self._asked(messages, schema)
                self.calls.keep(key, self.role, reply)
        if self.role == "extractor" and not reply.text.strip():
            raise ProviderError(f"{self.name}: read nothing, and said so with an empty reply")
        return reply

    def _asked(self, messages: Messages, schema: Any) -> CachedReply:
        try:
            reply: Any = super().ask(messages, schema=schema)
        except ProviderError as error:
            # The error of an empty reply has the reply, which was paid for as well.
            reply = getattr(error, "reply", None)
            if reply is None:
                raise UnansweredError(str(error)) from error
        said = sum(tokens_of(message["content"]) for message in messages)
        is_counted = bool(reply.input_tokens)
        return CachedReply(
            text=reply.text,
            is_cut=reply.is_cut,
            input_tokens=reply.input_tokens if is_counted else said,
            output_tokens=reply.output_tokens if is_counted else tokens_of(reply.text),
        )

    def _key(self, messages: Messages, schema: Any) -> str:
        settings = self.settings
        asked: list[Any] = [
            *(self.role, settings.provider, settings.model),
            *(settings.max_output_tokens, settings.temperature, schema),
            [[message["role"], message["content"]] for message in messages],
        ]
        text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
        return blake3(text.encode("utf-8", "replace")).hexdigest(16)
