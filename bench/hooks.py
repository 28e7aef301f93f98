"""Hooks as clients run them: a prompt with a running server, and without one.

python -m bench.hooks

The time of a whole process, from its start to its end; beside it, the processor time, also in
starts of a bare interpreter, which a busy machine slows down as much. No hook gives up here.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import worlddb
from bench.percentiles import line, machine

WARM_MS_MAX = 100
COLD_MS_MAX = 1_000
PROGRAM = [sys.executable, "-m", "worlddb"]
PLACES = ("Oslo", "Lima", "Kyoto", "Accra", "Quito", "Turin")
PATIENCE_S = "60"  # A hook that gives up would hide what it takes.
EVENT = {"prompt": "Which server runs in Kyoto, and who looks after it?"}


def filled(path: Path, memories: int) -> None:
    with worlddb.Memory(path, embedder="none", recluster="off") as memory:
        for number in range(memories):
            text = f"Server {number} runs in {PLACES[number % 6]}, and team {number % 40} owns it."
            memory.write(text, user_id="default", app_id="ada/shop")


def run(path: Path, folder: Path, env: dict[str, str]) -> tuple[float, float, bool]:
    """Return the seconds and the processor seconds of one hook, and whether it told anything."""
    told = json.dumps(EVENT | {"cwd": str(folder), "session_id": str(time.monotonic_ns())})
    return timed([*PROGRAM, "hook", "UserPromptSubmit", "--db", str(path)], told, env)


def timed(command: list[str], told: str, env: dict[str, str]) -> tuple[float, float, bool]:
    """Return the seconds and the processor seconds of a process, and whether it gave a context."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, input=told.encode(), stdout=subprocess.PIPE, env=env, check=True)
    taken, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return taken, used, b"additionalContext" in done.stdout


def report(
    name: str, found: list[tuple[float, float, bool]], budget_ms: int, bare_s: float
) -> None:
    used = median(one[1] for one in found)
    print(f"{name}: {used / bare_s:.1f} starts of a bare interpreter", end="; ")
    print(f"{sum(one[2] for one in found)} of {len(found)} told something", end="; ")
    print(f"at most {budget_ms:,} ms are allowed")
    print(line("whole process", [one[0] * 1e6 for one in found]))
    print(line("processor time", [one[1] * 1e6 for one in found]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "memory.db"
        (folder / ".git").mkdir()
        (folder / ".git" / "config").write_text('[remote "origin"]\n\turl = x:ada/shop\n')
        filled(path, args.memories)
        env = os.environ | {"XDG_DATA_HOME": name, "WORLDDB_CONFIG": os.devnull}
        env |= {"WORLDDB_HOOK_TIMEOUT_S": PATIENCE_S}
        bare = median(timed([sys.executable, "-c", ""], "", env)[1] for _ in range(args.runs))
        cold = [run(path, folder, env) for _ in range(args.runs)]
        report("hook, cold", cold, COLD_MS_MAX, bare)
        server = subprocess.Popen(
            [*PROGRAM, "serve", "--port", "0", "--db", str(path), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        try:
            assert server.stdout
            while server.stdout.readline() not in (b"", b"}\n"):
                pass
            run(path, folder, env)
            warm = [run(path, folder, env) for _ in range(args.runs)]
            report("hook, server", warm, WARM_MS_MAX, bare)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
