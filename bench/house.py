"""The figures of the source, as a Markdown table: `python -m bench.house [--list] [--quick]`.

Three kinds of figures. *Walks*: what one call passes through (files, rooms, calls, snapshots,
statements, processor time). *Names*: what a reader stumbles over (names used twice, names that are
no nouns, private names used from outside, numbers without a reason). *Weight*: what an installation
brings and how long a start takes. `--list` adds each offender by name; `--quick` leaves out what
starts other processes.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.metadata
import io
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import apsw

import worlddb

PACKAGE = Path(worlddb.__file__).parent
REPOSITORY = PACKAGE.parents[1]  # the checkout whose package is imported
SENTENCE = "I moved to Paris."
SIX_NAMES = (
    "Ada Lovelace met Charles Babbage yesterday, and Mary Somerville had invited both of them to "
    "dinner. The talk was about a letter that Luigi Menabrea had sent, about the lectures that "
    "Michael Faraday gives to everybody who wants to come, and about a long article on machines "
    "that Augustus Morgan would like to see translated, with some notes added at the end of it."
)
QUESTION = "Where do I live?"
ROUNDS = 15  # the median of fewer calls moves by more than a tenth of a millisecond
QUIET_S = 0.05  # background threads wake within milliseconds
STARTS = 9  # enough for a median that a busy machine does not move much

NOUNS = frozenset(
    (
        *("embedding", "embeddings", "encoding", "greeting", "heading", "mapping", "meaning"),
        *("ranking", "ring", "setting", "spelling", "string", "thing", "timing", "warning"),
    )
)
"""Words that end as participles do and are nouns nevertheless."""
PARTICIPLES = frozenset(
    (
        *("born", "done", "drawn", "found", "given", "gone", "having", "heard", "held", "kept"),
        *("known", "laid", "later", "left", "lost", "made", "met", "said", "seen", "sent"),
        *("shown", "spoken", "taken", "told", "wide", "worn", "written"),
    )
)
"""Irregular participles, and adjectives that were found as names of modules."""
ENDS_AS_NOUN = re.compile(r"(ee|s?p|f|br|bl|se|we)ed$")
"""`feed`, `speed`, `seed`, `weed`: nouns that only look like participles."""
NAMED_TUPLE_METHODS = frozenset({"_replace", "_asdict", "_fields", "_make", "_field_defaults"})


# Walks: one call, followed through the package.


class Walk(NamedTuple):
    """What one call passed through."""

    files: int
    rooms: int
    calls: int
    leaving: int
    snapshots: int
    sent: int
    statements: int
    later: int
    time_ms: float


class Counts:
    """Counts statements and read snapshots of every store that is opened while it is installed.

    Those of the thread that made it are counted apart from those of background threads (`later`).
    Each execution of a statement counts, so a batch of ten rows counts ten. What the store itself
    counts (`Walk.sent`) is what it sends to the database: a batch counts once.
    """

    def __init__(self) -> None:
        self.statements = 0
        self.snapshots = 0
        self.later = 0
        self._caller = threading.get_ident()

    def install(self) -> None:
        """Watch every connection that will be opened."""
        apsw.connection_hooks.append(self._watch)

    def wrap_stores(self) -> None:
        """Count the `read()` of each store that is open; call it once stores are open."""
        found = {type(one) for one in gc.get_objects() if _is_store(type(one))}
        for store in found:
            inner = store.read
            if not hasattr(inner, "counted"):
                store.read = self._counted(inner)

    def _watch(self, connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, self._statement)

    def _statement(self, event: Mapping[str, Any]) -> None:
        # What a trigger or a text index runs inside belongs to the statement that fired it.
        if event["trigger"]:
            return
        if threading.get_ident() == self._caller:
            self.statements += 1
        else:
            self.later += 1

    def wait(self) -> None:
        """Wait until no background thread has run a statement for a while."""
        before = -1
        while before != self.later:
            before = self.later
            time.sleep(QUIET_S)

    def _counted(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any, **options: Any) -> Any:
            self.snapshots += threading.get_ident() == self._caller
            return inner(*args, **options)

        setattr(read, "counted", True)  # noqa: B010 - a mark of ours on a function
        return read


def _is_store(kind: type) -> bool:
    module = getattr(kind, "__module__", "")
    is_ours = isinstance(module, str) and module.startswith("worlddb.store")
    return is_ours and kind.__name__.endswith("Store") and hasattr(kind, "read")


def walk(call: Callable[[], object], counts: Counts, store: Any) -> Walk:
    """Make a call once; return what it passed through, without its time."""
    seen: Counter[str] = Counter()
    leaving = 0
    base = f"{PACKAGE}{os.sep}"

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal leaving
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(base) and code.co_name != "<module>":
            seen[code.co_filename.removeprefix(base)] += 1
            caller = frame.f_back
            leaving += caller is not None and caller.f_code.co_filename != code.co_filename

    counts.wait()
    statements, snapshots, later = counts.statements, counts.snapshots, counts.later
    sent = store.statements
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    sent = store.statements - sent
    counts.wait()
    return Walk(
        files=len(seen),
        rooms=len({os.path.dirname(file) for file in seen}),
        calls=sum(seen.values()),
        leaving=leaving,
        snapshots=counts.snapshots - snapshots,
        sent=sent,
        statements=counts.statements - statements,
        later=counts.later - later,
        time_ms=0.0,
    )


def walks() -> dict[str, Walk]:
    """Return what a short write, a write of six names and a recall pass through."""
    with tempfile.TemporaryDirectory() as folder:
        # Times first: a store that is watched is slower.
        with worlddb.Memory(os.path.join(folder, "times.db"), recluster="off") as memory:
            times = _times(memory)
        counts = Counts()
        counts.install()
        with worlddb.Memory(os.path.join(folder, "counts.db"), recluster="off") as memory:
            counts.wrap_stores()
            _warm(memory, "ada")
            found: dict[str, Walk] = {}
            for name, call in _calls(memory).items():
                memory.recall(QUESTION, user_id="ada")  # Does what the write before left to do.
                found[name] = walk(partial(call, "ada"), counts, memory.db.engine.store)
    return {name: one._replace(time_ms=times[name]) for name, one in found.items()}


def _calls(memory: worlddb.Memory) -> dict[str, Callable[[str], object]]:
    return {
        "write of one sentence": lambda user: memory.write(SENTENCE, user_id=user),
        "write of six names": lambda user: memory.write(SIX_NAMES, user_id=user),
        "recall": lambda user: memory.recall(QUESTION, user_id=user),
    }


def _times(memory: worlddb.Memory) -> dict[str, float]:
    """Return the median processor time of each call, in milliseconds."""
    times: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS):
        user = f"user {number}"
        _warm(memory, user)
        for name, call in _calls(memory).items():
            memory.recall(QUESTION, user_id=user)
            started = time.thread_time_ns()
            call(user)
            times[name].append((time.thread_time_ns() - started) / 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def _warm(memory: worlddb.Memory, user: str) -> None:
    for text in ("I like tea.", "I live in Rome."):
        memory.write(text, user_id=user)
        memory.recall(QUESTION, user_id=user)


# Names: what the source says to who reads it.


class Module(NamedTuple):
    """One file of the package."""

    name: str
    text: str
    tree: ast.Module

    @property
    def stem(self) -> str:
        """Its own name, without rooms."""
        return self.name.rpartition("/")[2].removesuffix(".py")


def modules() -> list[Module]:
    """Return every file of the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(PACKAGE).as_posix(), text, ast.parse(text)))
    return found


def named_by_us(found: Iterable[Module]) -> list[Module]:
    """Return the modules that have a name of their own: not `__init__`, not a command's file."""
    return [
        one for one in found if not one.stem.startswith("__") and "cli/commands/" not in one.name
    ]


def used_twice(names: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names that more than one place has; given as (name, place)."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, place in names:
        places[name].append(place)
    return [
        f"{name}: {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1
    ]


def classes(found: Iterable[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    """Yield the classes at the top of each module."""
    for module in found:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                yield module, node


def is_participle(stem: str) -> bool:
    """Return whether a module's name is a gerund or a participle; its last word decides."""
    word = stem.strip("_").rpartition("_")[2]
    if word in NOUNS:
        return False
    looks_past = len(word) > 4 and word.endswith("ed") and not ENDS_AS_NOUN.search(word)
    return word in PARTICIPLES or looks_past or (len(word) > 4 and word.endswith("ing"))


def _ours(module: Module) -> set[str]:
    """Return the names in a module that the package defines: here or in another module."""
    names = {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("worlddb"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def several_parents(found: Iterable[Module]) -> list[str]:
    """Return the classes, protocols aside, that have more than one parent in the package."""
    wrong = []
    for module, node in classes(found):
        ours = _ours(module)
        parents = [ast.unparse(one).partition("[")[0] for one in node.bases]
        inner = [one for one in parents if one.partition(".")[0] in ours]
        if len(inner) > 1 and "Protocol" not in parents:
            wrong.append(f"{module.name}: {node.name}({', '.join(inner)})")
    return wrong


def _foreign_modules(tree: ast.Module) -> set[str]:
    """Return the names of modules from outside the package that a module imports."""
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if not alias.name.startswith("worlddb")
    }


def _defined(tree: ast.Module) -> set[str]:
    """Return the private names that a module defines: functions, variables, fields, slots."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
    return names


def private_uses(found: Iterable[Module]) -> list[str]:
    """Return where a private name of another module's object is used."""
    wrong = []
    for module in found:
        defined, foreign = _defined(module.tree), _foreign_modules(module.tree)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("worlddb"):
                taken = [alias.name for alias in node.names if _is_private(alias.name)]
                wrong += [f"{module.name}:{node.lineno}: imports {name}" for name in taken]
            if not isinstance(node, ast.Attribute) or not _is_private(node.attr):
                continue
            owner = ast.unparse(node.value)
            if owner in ("self", "cls", "super()") or owner in foreign or node.attr in defined:
                continue
            wrong.append(f"{module.name}:{node.lineno}: {owner:.40}.{node.attr}")
    return wrong


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE_METHODS


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.BinOp) and _is_number(node.left) and _is_number(node.right)


def numbers(module: Module) -> Iterator[tuple[str, bool]]:
    """Yield each numeric constant of a module, and whether a reason stands beside it.

    A reason is a comment on its lines or on the line above, or a string right after it.
    """
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
        if token.type == tokenize.COMMENT
    }
    body = module.tree.body
    for place, node in enumerate(body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not _is_number(node.value):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name) or not target.id.strip("_").isupper():
            continue
        after = body[place + 1] if place + 1 < len(body) else None
        is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        lines = range(node.lineno - 1, (node.end_lineno or node.lineno) + 1)
        yield f"{module.name}: {target.id}", is_told or any(line in comments for line in lines)


# Weight: what an installation brings, and how long a start takes.


def packages() -> set[str]:
    """Return the names of all packages that a plain installation brings, WorldDB aside."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: set[str] = set()
    todo: list[tuple[str, tuple[str, ...]]] = [(one, ()) for one in project["dependencies"]]
    done: set[tuple[str, tuple[str, ...]]] = set()
    while todo:
        text, extras = todo.pop()
        needed = Requirement(text)
        name = canonicalize_name(needed.name)
        environments = [{"extra": extra} for extra in (*extras, "")]
        if needed.marker and not any(map(needed.marker.evaluate, environments)):
            continue
        found.add(name)
        mine = tuple(sorted(needed.extras))
        if (name, mine) in done:
            continue
        done.add((name, mine))
        try:
            below = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            below = []  # Not installed here: counted, but what it brings is unknown.
        todo += [(one, mine) for one in below]
    return found


def start_ratios() -> dict[str, float]:
    """Return how many times as long as an empty Python each start takes, in this very run."""
    programs = {
        "nothing": ["-c", "pass"],
        "import worlddb": ["-c", "import worlddb"],
        "worlddb --help": ["-m", "worlddb", "--help"],
    }
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    taken: dict[str, list[float]] = defaultdict(list)
    for number in range(STARTS + 1):
        for name, arguments in programs.items():
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, *arguments],
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            if number:  # The first start of each fills the caches.
                taken[name].append(time.perf_counter() - started)
    empty = statistics.median(taken.pop("nothing"))
    return {name: statistics.median(times) / empty for name, times in taken.items()}


# The table.


class Row(NamedTuple):
    """One figure, and those it counts."""

    figure: str
    value: str
    found: list[str] = []  # noqa: RUF012 - never changed


def name_rows(found: list[Module]) -> Iterator[Row]:
    """Yield the figures of the source's names."""
    own = named_by_us(found)
    lines = sum(one.text.count("\n") for one in found)
    yield Row("modules / lines in `src`", f"{len(found)} / {lines:,}")
    twice = used_twice((one.stem, one.name) for one in own)
    yield Row("module names used more than once", str(len(twice)), twice)
    twice = used_twice((node.name, module.name) for module, node in classes(found))
    yield Row("class names used more than once", str(len(twice)), twice)
    wrong = [one.name for one in own if is_participle(one.stem)]
    yield Row("module names that are gerunds or participles", str(len(wrong)), wrong)
    wrong = several_parents(found)
    yield Row(
        "classes with several parents in the package, protocols aside", str(len(wrong)), wrong
    )
    wrong = private_uses(found)
    yield Row("uses of another object's private names", str(len(wrong)), wrong)
    told = [one for module in found for one in numbers(module)]
    wrong = [name for name, has_reason in told if not has_reason]
    yield Row("numeric constants without a reason", f"{len(wrong)} of {len(told)}", wrong)


def walk_rows() -> Iterator[Row]:
    """Yield the figures of the three calls, one row per figure."""
    found = walks()
    names = " / ".join(found)

    def row(figure: str, told: Callable[[Walk], object]) -> Row:
        return Row(f"{figure}: {names}", " / ".join(str(told(one)) for one in found.values()))

    yield row("files walked", lambda one: one.files)
    yield row("rooms walked", lambda one: one.rooms)
    yield row("calls", lambda one: f"{one.calls:,}")
    yield row("calls that leave their file", lambda one: f"{one.leaving / one.calls:.0%}")
    yield row("read snapshots", lambda one: one.snapshots)
    yield row("SQL statements sent (a batch counts once)", lambda one: one.sent)
    yield row("SQL statements executed (each row counts)", lambda one: one.statements)
    yield row("processor time, ms", lambda one: f"{one.time_ms:.1f}")


def weight_rows() -> Iterator[Row]:
    """Yield what an installation brings and how long a start takes."""
    every = packages()
    yield Row("packages of a plain installation", str(len(every)), sorted(every))
    for name, ratio in start_ratios().items():
        yield Row(f"`{name}`, as a multiple of an empty Python", f"{ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what each figure counts")
    parser.add_argument("--quick", action="store_true", help="start no other processes")
    args = parser.parse_args()
    rows = [*name_rows(modules()), *walk_rows(), *([] if args.quick else weight_rows())]
    print("| figure | value |\n|---|---|")
    for row in rows:
        print(f"| {row.figure} | {row.value} |")
    for row in rows if args.list else ():
        if row.found:
            print(f"\n{row.figure}:\n" + "\n".join(f"- {one}" for one in row.found))


if __name__ == "__main__":
    main()
