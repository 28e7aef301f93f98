"""Trials: each attacks a store of its own for some rounds and returns what broke.

An empty list of failures is the only good result. What is random comes from the seed, so a failure
can be repeated.
"""

from __future__ import annotations

import http.client
import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import worlddb
from crash.branch_witness import BranchWitness
from crash.sharer import HELD, TEXT
from crash.test_cut import lives, verify
from crash.test_kill import Witness, doomed, kill_crowd, last_words, lines_of
from crash.test_retention_kill import kill_keeper
from encryption.encrypting_build import environment
from faces.command import COMMAND
from faces.http.serving import Answer, Process, Site
from store.postgres.outages import cut_lines, failovers, killed_servers, side_by_side

KILLED = Path(__file__).parents[1] / "encryption" / "killed_processes.py"
INTERRUPTS = Path(__file__).parents[1] / "crash" / "interrupts.py"
LIFE_WRITES = 570  # of `crash.cut`, about
KILLS_PER_STORE = 50  # The whole store is checked after each: one for all took most of an hour.
LIVES_PER_STORE = 10
"""So many processes with policies or branches are killed on one store."""
SHARER = Path(__file__).parents[1] / "crash" / "sharer.py"
SHARING_USERS = 3  # six rights between them, so that each is given and revoked often
TEXTS = 40
"""Memories of a store whose bytes are flipped: its pages hold every table."""
HOSTILE_S_MAX = 10.0  # for one text of a hundred thousand characters, on a busy machine
ANSWER_S_MAX = 5.0  # an honest client gives up then
STOP_S_MAX = 10.0  # what a service manager waits before it kills
ANSWERS_EVERY = 20  # slow clients between two honest ones
HEALTH = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"  # its answer is never read
SOAKERS = 8  # clients at once; more only wait for each other
SOAK_USERS = 40  # so that each has some hundred memories in the end
LOOK_EVERY_S = 10.0  # between two looks at the memory of the server
FAILURES_TOLD = 5  # of one client; more would say the same
LEVEL_MB_MAX = 48  # what the second half may add: memories that were written, and pages of them
GROWTH_MAX = 6.0  # of the time for four times the text; quadratic would be 16


@dataclass(slots=True)
class Outcome:
    """What a trial did and what broke."""

    tried: int = 0
    told: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        """Count something that is no failure."""
        self.told[what] = self.told.get(what, 0) + number


def kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill a writer at random moments: what it acknowledged is there."""
    moments = random.Random(seed)
    outcome = Outcome()
    for number in range(rounds):
        outcome.tried += 1
        if number % KILLS_PER_STORE == 0:
            witness = Witness(folder / f"{number // KILLS_PER_STORE}.db")
        try:
            acks = witness.kill(seed + number, moments.choice((0, 1, 8)), moments.uniform(0, 0.02))
        except AssertionError as error:
            outcome.failures.append(f"kill {number}: {error!s:.200}")
            break
        outcome.count("acknowledged", acks)
    return outcome


def encrypted_kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill writers, and changes of the key, of encrypted stores; no file may be readable then.

    Raises:
        MissingBuildError: the encrypting SQLite cannot be fetched.
    """
    env = environment() | {"WORLDDB_TEST_KILLS": str(rounds), "WORLDDB_TEST_SEED": str(seed)}
    program = [sys.executable, "-m", "pytest", "-x", str(KILLED), f"--basetemp={folder / 'kills'}"]
    done = subprocess.run(program, env=env, capture_output=True, cwd=KILLED.parents[2], check=False)
    outcome = Outcome(tried=2 * rounds)
    outcome.count("writers killed", rounds)
    outcome.count("changes of the key killed", rounds)
    if done.returncode:
        outcome.failures.append(done.stdout.decode()[-2000:] + done.stderr.decode()[-500:])
    return outcome


def policy_kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill a process that applies retention policies: holds hold, and what is due is erased."""
    moments, outcome = random.Random(seed), Outcome()
    for number in range(rounds):
        outcome.tried += 1
        # A new store each few lives: what is under hold is never erased, and the file grows.
        store, life = folder / f"{number // LIVES_PER_STORE}.db", number % LIVES_PER_STORE
        try:
            done = kill_keeper(store, life, moments.choice((0, 1, 3)), moments.uniform(0, 0.2))
        except AssertionError as error:
            outcome.failures.append(f"policy kill {number}: {error!s:.500}")
            break
        outcome.count("policies applied", done)
    return outcome


def crowded_kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill a process of many writers that share commits: what any acknowledged is there."""
    moments, outcome = random.Random(seed), Outcome()
    for number in range(rounds):
        outcome.tried += 1
        acks, delay_s = moments.choice((1, 10, 30)), moments.uniform(0, 0.02)
        try:
            heard = kill_crowd(folder / "store.db", seed + number, acks, delay_s)
        except AssertionError as error:
            outcome.failures.append(f"kill {number}: {error!s:.200}")
            break
        outcome.count("acknowledged", heard)
    return outcome


def shared_kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill who gives grants and sets policies: each right is as acknowledged, and a hold holds."""
    moments, outcome, path = random.Random(seed), Outcome(), folder / "store.db"
    rights: dict[tuple[str, str], bool | None] = {}
    for number in range(rounds):
        outcome.tried += 1
        with doomed(path, seed + number, SHARER, SHARING_USERS) as sharer:
            said = lines_of(sharer.stdout)
            lines = list(islice(said, 2 * moments.randrange(1, 12) + moments.randrange(2)))
            sharer.kill()
            lines += said
            complaint = last_words(sharer)
        if complaint:
            outcome.failures.append(f"kill {number}: {complaint!r:.300}")
            break
        for at, (what, giver, taker) in enumerate(lines):
            if what in ("grant", "revoke"):
                # The first line of two announces it: a kill may come before or after the commit.
                rights[giver, taker] = None if at % 2 == 0 else what == "grant"
        outcome.count("acknowledged", len(lines) // 2)
        outcome.failures += _wrong_rights(path, rights)
    return outcome


def branch_kills(folder: Path, rounds: int, seed: int) -> Outcome:
    """Kill who writes on branches, merges and drops them: nothing is lost, halved or mixed up."""
    moments, outcome = random.Random(seed), Outcome()
    for number in range(rounds):
        outcome.tried += 1
        if number % LIVES_PER_STORE == 0:
            witness = BranchWitness(folder / f"{number // LIVES_PER_STORE}.db")
        heard, failures = witness.kill(seed + number, moments)
        outcome.count("acknowledged", heard)
        outcome.failures += [f"kill {number}: {failure:.300}" for failure in failures]
        if failures:
            break
    return outcome


def _wrong_rights(path: Path, rights: dict[tuple[str, str], bool | None]) -> list[str]:
    """Return what a store says otherwise than what was acknowledged; settle what was not."""
    with worlddb.Memory(path, embedder="none", recluster="off") as memory:
        wrong = [str(problem) for problem in memory.db.check()]
        if [one.text for one in memory.list(user_id=HELD)] != [TEXT]:
            wrong.append("what is under legal hold has changed")
        for (giver, taker), expected in rights.items():
            try:
                found = bool(list(memory.bound(user_id=taker).list(user_id=giver)))
            except worlddb.WorldDBError:
                found = False
            if expected is not None and found != expected:
                wrong.append(f"{taker} reads {giver}: {found}, acknowledged was {expected}")
            rights[giver, taker] = found
    return wrong


def power_cuts(folder: Path, rounds: int, seed: int) -> Outcome:
    """Cut the power at writes to the disk, spread over the life of a writer."""
    outcome = Outcome()
    # An odd step meets both the headers and the pages of the log.
    for life in lives(folder, "power", "full", max(1, LIFE_WRITES // rounds) | 1):
        outcome.tried += 1
        try:
            verify(life, may_lose=False)
        except (AssertionError, worlddb.WorldDBError) as error:
            outcome.failures.append(f"cut at write {life.number}: {error!s:.200}")
        outcome.count("acknowledged", len(life.acks))
    return outcome


def live_backups(folder: Path, rounds: int, seed: int) -> Outcome:
    """Back a store up while another process writes: the copy is whole and misses nothing."""
    outcome = Outcome()
    path = folder / "store.db"
    with doomed(path, seed) as writer:
        said = lines_of(writer.stdout)
        for _ in range(5):
            next(said)
        for number in range(rounds):
            acknowledged = next(said)["seq"]
            copy = folder / f"copy-{number}.db"
            with worlddb.open(path) as db:
                db.backup(copy)
            with worlddb.open(copy) as db:
                problems, head = db.check(), db.log()[-1].seq
            outcome.tried += 1
            outcome.count("commits in copies", head)
            if problems or head < acknowledged:
                outcome.failures.append(f"copy {number}: head {head} < {acknowledged}, {problems}")
            copy.unlink()
    return outcome


def flipped_bytes(folder: Path, rounds: int, seed: int) -> Outcome:
    """Flip one byte of a store: each memory reads as it was written, or is refused as damaged."""
    rng, outcome = random.Random(seed), Outcome()
    whole = folder / "whole.db"
    with worlddb.open(whole, embedder="none") as db:
        with db.transaction() as tx:
            nodes = [
                tx.create_node(type="Memory", name=f"note {n}", content=f"The code {n} is {n * 7}.")
                for n in range(TEXTS)
            ]
        written = {node.id: (node.name, node.content) for node in nodes}
    data = whole.read_bytes()
    for _ in range(rounds):
        outcome.tried += 1
        place, bit = rng.randrange(100, len(data)), 1 << rng.randrange(8)
        copy = folder / "flipped.db"
        copy.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        try:
            with worlddb.open(copy, embedder="none", read_only=True) as db:
                outcome.count("noticed" if _is_refused(db, written) else "without effect")
        except worlddb.WorldDBError:
            outcome.count("noticed")
        except Exception as error:
            outcome.failures.append(f"byte {place}, bit {bit}: {type(error).__name__}: {error}")
        for left in folder.glob("flipped.db*"):
            left.unlink()
    return outcome


def _is_refused(db: worlddb.WorldDB, written: dict[worlddb.Id, tuple[str, str]]) -> bool:
    """Return whether a read was refused; raise if one came back changed."""
    is_refused = False
    for ident, expected in written.items():
        try:
            node = db.get(ident)
        except worlddb.WorldDBError:
            is_refused = True
        else:
            if (node.name, node.content) != expected:
                raise AssertionError(f"read changed text: {node.content!r}")
    with suppress(worlddb.WorldDBError):
        for hit in db.recall("Which code is it?", k=TEXTS):
            known = written.get(hit.node.id)
            if known is not None and (hit.node.name, hit.node.content) != known:
                raise AssertionError(f"recalled changed text: {hit.node.content!r}")
    return is_refused


def mutated_imports(folder: Path, rounds: int, seed: int) -> Outcome:
    """Change a byte of an export: it is refused, or without effect, and the store stays sound."""
    rng, outcome = random.Random(seed), Outcome()
    with worlddb.open(folder / "source.db", embedder="none") as db:
        for number in range(8):
            db.ingest(f"I moved to city {number}. Ann works at firm {number}.")
        data = "\n".join(db.export()).encode()
    for number in range(rounds):
        outcome.tried += 1
        place = rng.randrange(len(data))
        changed = data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        target = folder / f"made-{number}.db"
        try:
            with worlddb.open(target, embedder="none") as made:
                try:
                    made.replay(changed.decode(errors="replace").splitlines())
                except worlddb.WorldDBError:
                    outcome.count("refused")
                else:
                    outcome.count("accepted")
                outcome.failures += [f"byte {place}: {one.message}" for one in made.check()]
        except Exception as error:
            outcome.failures.append(f"byte {place}: {type(error).__name__}: {error}")
        for left in folder.glob(f"made-{number}.db*"):
            left.unlink()
    return outcome


def interrupts(folder: Path, rounds: int, seed: int) -> Outcome:
    """Press Ctrl-C at random instants: closing never hangs, and what follows works."""
    command = [sys.executable, str(INTERRUPTS), str(folder / "store.db"), str(rounds), str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60 + rounds, check=False)
    if run.returncode:
        return Outcome(rounds, failures=[run.stderr[-500:]])
    said = json.loads(run.stdout)
    told = {"interrupts": said["interrupts"]}
    return Outcome(rounds, told, [*said["failures"], *said["check"]])


def _hostile() -> Iterator[tuple[str, str]]:
    """Yield a name and a piece of text that is repeated to the length of an attack."""
    yield "claims", "I live in Rome. "
    yield "names", "Ann met Bob and Carl Dean in Paris. "
    yield "brackets", "([{<"
    yield "one word", "a"
    yield "quotes", "\"'“’"
    yield "dates", "on 3 May 2024 at 10:30, last Tuesday, two weeks ago "
    yield "marks", "\u202e\u0301\u200d"
    yield "numbers", "1,000.50 "
    yield "lines", "# a\n- b\n"


def hostile_texts(folder: Path, rounds: int, seed: int) -> Outcome:
    """Write texts made to be slow: time is linear in the length, and the store stays sound."""
    outcome = Outcome()
    with worlddb.Memory(folder / "store.db", embedder="none", recluster="off") as memory:
        for name, piece in list(_hostile())[:rounds]:
            outcome.tried += 1
            short = _seconds(memory, piece * (25_000 // len(piece)))
            long = _seconds(memory, piece * (100_000 // len(piece)))
            slowest = max(outcome.told.get("slowest, ms", 0), int(long * 1000))
            outcome.told["slowest, ms"] = slowest
            if long > HOSTILE_S_MAX or long > GROWTH_MAX * max(short, 0.1):
                outcome.failures.append(f"{name}: {short:.2f} s, four times as long {long:.2f} s")
    with worlddb.open(folder / "store.db") as db:
        outcome.failures += [f"check: {problem.message}" for problem in db.check()]
    return outcome


def _seconds(memory: worlddb.Memory, text: str) -> float:
    """Return how long it takes to write a text, and the same as a chat of short messages."""
    began = time.process_time()
    memory.write(text, user_id="mallory")
    parts = (text[at : at + 40] for at in range(0, len(text), 40))
    chat = [{"role": "user", "content": part} for part in parts if part.strip()]
    memory.write(messages=chat, user_id="trudy")
    return time.process_time() - began


def slow_clients(folder: Path, rounds: int, seed: int) -> Outcome:
    """Open connections that send half a request, or never read: others are answered in time."""
    rng, outcome = random.Random(seed), Outcome()
    begun = b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
    with Process(folder / "store.db", command=COMMAND) as server, ExitStack() as held:
        for _ in range(rounds):
            outcome.tried += 1
            connection = socket.create_connection(("127.0.0.1", server.site.port), ANSWER_S_MAX)
            held.enter_context(connection)
            cut = rng.randrange(1, len(begun))
            with suppress(ConnectionError):  # A server that has enough of them may close some.
                connection.sendall(rng.choice((begun[:cut], begun + b"\r\n{", HEALTH * 200)))
            if outcome.tried % ANSWERS_EVERY == 0:
                _ask_honestly(server, outcome)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        server.wait()
        if time.monotonic() - began > STOP_S_MAX:
            outcome.failures.append(f"stopping took {time.monotonic() - began:.1f} s")
    return outcome


def _ask_honestly(server: Process, outcome: Outcome) -> None:
    """Write and ask for the health as an honest client does, from another address."""
    began = time.monotonic()
    for path, body in (("/v1/memories", b'{"text": "a note", "user_id": "ada"}'), ("/health", b"")):
        made = http.client.HTTPConnection(
            "127.0.0.1", server.site.port, ANSWER_S_MAX, source_address=("127.0.0.9", 0)
        )
        try:
            headers = {"Content-Type": "application/json"}
            made.request("POST" if body else "GET", path, body or None, headers)
            status = made.getresponse().status
        except OSError as error:
            outcome.failures.append(f"{path}: {error!r} beside {outcome.tried} slow clients")
        else:
            if status not in (200, 201):
                outcome.failures.append(f"{path}: {status} beside {outcome.tried} slow clients")
        finally:
            made.close()
    if time.monotonic() - began > ANSWER_S_MAX:
        outcome.failures.append(f"an answer came late beside {outcome.tried} slow clients")
    outcome.count("answered")


def soak(folder: Path, rounds: int, seed: int) -> Outcome:
    """Let many kinds of clients at a server for so many seconds: its memory levels off."""
    outcome, end = Outcome(), time.monotonic() + rounds
    with Process(folder / "store.db", "--embedder", "hash-64") as server:
        seen = [server.memory_mb()]
        with ThreadPoolExecutor(SOAKERS) as pool:
            clients = [
                pool.submit(_soak, server.site, random.Random(seed + number), end)
                for number in range(SOAKERS)
            ]
            while time.monotonic() < end:
                time.sleep(min(LOOK_EVERY_S, max(0.0, end - time.monotonic())))
                seen.append(server.memory_mb())
        for client in clients:
            answered, failures = client.result()
            outcome.tried += answered
            outcome.failures += failures[:FAILURES_TOLD]
    half = seen[len(seen) // 2]
    outcome.told = {"first MB": seen[0], "half-way": half, "last": seen[-1], "peak": max(seen)}
    if seen[-1] - half > LEVEL_MB_MAX:
        outcome.failures.append(f"memory does not level off: {seen} MB")
    return outcome


def _soak(site: Site, rng: random.Random, end: float) -> tuple[int, list[str]]:
    """Call a server again and again; return how often it answered, and what was wrong."""
    answered, failures = 0, []
    while not answered or time.monotonic() < end:
        try:
            expected, answer = _any_call(site, rng)
        except OSError as error:
            failures.append(f"no answer: {error!r}")
            continue
        answered += 1
        if answer.status != expected:
            failures.append(f"{answer.status} instead of {expected}")
    return answered, failures


def _any_call(site: Site, rng: random.Random) -> tuple[int, Answer]:
    """Call a server in any way, as any of some users; return what it should say, and its answer."""
    user = f"user-{rng.randrange(SOAK_USERS)}"
    name = f"{rng.choice(('Ada', 'Bob', 'Carl'))} {rng.choice(('Berg', 'Chen', 'Dean'))}"
    text = f"{name} met {rng.randrange(10**6)} in {rng.choice(('Oslo', 'Rome', 'Kyiv'))}."
    arguments: dict[str, Any] = {"query": f"Whom did {name} meet?", "user_id": user}
    calls: tuple[tuple[int, Callable[[], Answer]], ...] = (
        (200, lambda: site.post("/v1/memories", text=text, user_id=user)),
        (200, lambda: site.post("/v1/recall", **arguments)),
        (200, lambda: site.get(f"/v1/memories?user_id={user}&limit=20")),
        (200, lambda: site.rpc("tools/call", name="memory_recall", arguments=arguments)),
        (200, lambda: site.rpc("tools/list")),
        (404, lambda: site.get(f"/v1/memories/{rng.randrange(16**12):012x}")),
        (400, lambda: site.post("/v1/recall", question=text)),
        (200, lambda: site.get("/health")),
    )
    expected, call = rng.choice(calls)
    return expected, call()


def outage(strike: Callable[[int], int]) -> Callable[[Path, int, int], Outcome]:
    """Return a trial of an outage of PostgreSQL, on a server of its own."""

    def trial(folder: Path, rounds: int, seed: int) -> Outcome:
        outcome = Outcome(rounds)
        try:
            outcome.count("acknowledged", strike(rounds))
        except (AssertionError, worlddb.WorldDBError) as error:
            outcome.failures.append(f"{error!s:.500}")
        return outcome

    return trial


TRIALS: dict[str, tuple[Callable[[Path, int, int], Outcome], int, int]] = {
    "kills": (kills, 2, 750),
    "crowded kills": (crowded_kills, 2, 200),
    "encrypted kills": (encrypted_kills, 2, 100),
    "policy kills": (policy_kills, 1, 100),
    "shared kills": (shared_kills, 2, 150),
    "branch kills": (branch_kills, 2, 150),
    "power cuts": (power_cuts, 2, 570),
    "live backups": (live_backups, 2, 270),
    "flipped bytes": (flipped_bytes, 25, 3_000),
    "mutated imports": (mutated_imports, 15, 400),
    "interrupts": (interrupts, 15, 2_000),
    "hostile texts": (hostile_texts, 1, 9),
    "slow clients": (slow_clients, 20, 1_500),
    "killed databases": (outage(killed_servers), 1, 20),
    "failovers": (outage(failovers), 1, 20),
    "cut lines": (outage(cut_lines), 2, 200),
    "servers side by side": (outage(side_by_side), 1, 30),
    "soak": (soak, 2, 600),
}
"""Name → the trial, its rounds in the test suite, and in `make chaos`; of a soak, seconds."""


def run_trial(name: str, folder: Path, *, is_short: bool, seed: int) -> Outcome:
    """Run one trial in an empty folder, which is removed."""
    trial, short, long = TRIALS[name]
    folder.mkdir(parents=True)
    try:
        return trial(folder, short if is_short else long, seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
