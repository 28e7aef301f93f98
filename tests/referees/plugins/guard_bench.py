"""The benchmark of `agent-memory-guard` (amg-bench) on a memory, in four ways.

    python tests/referees/plugins/guard_bench.py      prints one JSON object a line

A system has to keep what a poisoned write says from a later turn, and to give back what is harmless
as it was. The benchmark looks for the poisoned words in whatever comes back and cannot see that a
text is marked. So each way of reading is graded by itself: what a session starts with, what a
question finds, and what a question finds where tools and pages wait for a decision. Its harmless
texts all come from the user. So the last way brings them by a tool, too, and tells what that costs.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from agent_memory_guard.bench.adapter import MemorySystemAdapter, RememberOutcome
from agent_memory_guard.bench.harness import run_suite
from agent_memory_guard.bench.scenarios import default_corpus
from agent_memory_guard.bench.scoring import score_report

import worlddb
from worlddb import Memory

ORIGINS = {
    "external_tool": "tool",
    "user_input": "user",
    "agent_authored": "assistant",
    "system": "user",
}
"""The origin that a face of ours stamps on what the benchmark calls a source."""
BUDGET = 100_000  # Tokens: everything fits, so that only trust decides.
QUESTION_MAX = 1_000  # Characters: all of each text but the one that is long on purpose.


class WorldAdapter(MemorySystemAdapter):
    """A memory whose keys are metadata; a later turn asks in the words of the text itself."""

    name = "worlddb (asked, usual settings)"
    version = worlddb.__version__

    def __init__(self) -> None:
        self.memory = Memory(":memory:", embedder="none", recluster="off")
        self.questions: dict[str, str] = {}

    def remember(
        self, key: str, value: Any, *, source_class: str = "external_tool"
    ) -> RememberOutcome:
        origin: Any = ORIGINS[source_class]
        # No question is better for whoever planted the text.
        self.questions[key] = str(value)[:QUESTION_MAX]
        done = self.memory.write(value, origin=origin, metadata={"key": key})
        if any(held.id == done.id for held in self.memory.quarantine()):
            return RememberOutcome.QUARANTINED
        read = self.memory.read(done.id).text
        return RememberOutcome.STORED if read == value else RememberOutcome.REDACTED

    def recall(self, key: str) -> Any | None:
        hits = self.memory.recall(self.questions[key], where={"key": key})
        return "\n".join(hit.node.content for hit in hits) or None


class SessionStart(WorldAdapter):
    """What a session starts with, without a question."""

    name = "worlddb (start of a session, usual settings)"

    def recall(self, key: str) -> Any | None:
        shown = self.memory.context(max_tokens=BUDGET, where={"key": key})
        texts = [self.memory.read(ident).text for ident in shown.ids]
        return "\n".join(texts) or None


class Quarantine(WorldAdapter):
    """What a question finds where tools and pages wait for a decision, and secrets are masked."""

    name = "worlddb (asked, tools in quarantine)"

    def __init__(self) -> None:
        super().__init__()
        self.memory.set_trust({"tool": "quarantine", "web": "quarantine"}, secrets="mask")


def brought_by(source: str, corpus: Any) -> list[Any]:
    """Return scenarios whose texts all come from one source."""
    return [
        dataclasses.replace(
            one, steps=tuple(dataclasses.replace(step, source_class=source) for step in one.steps)
        )
        for one in corpus
    ]


def graded(adapter: Callable[[], WorldAdapter], corpus: Any, name: str = "") -> dict[str, Any]:
    report = run_suite(adapter, corpus)
    card = score_report(report)
    return {
        "system": name or card.system,
        "attacks": card.malicious_total,
        "succeeded": sum(run.breached for run in report.runs),
        "unread": sum(run.recall_error for run in report.runs),
        "benign": card.benign_total,
        "untouched": card.benign_total - card.false_positives,
        "grade": card.grade.value,
    }


def marked(corpus: Any) -> dict[str, Any]:
    """Count the attacks that a question brings into a prompt, and those not told as a tool's."""
    found = unmarked = 0
    for scenario in corpus:
        if scenario.malicious:
            adapter = WorldAdapter()
            for step in scenario.steps:
                adapter.remember(step.key, step.value, source_class=step.source_class)
            asked = adapter.questions[scenario.probe_key]
            lines = adapter.memory.context(asked, max_tokens=BUDGET).text.splitlines()
            told = [line for line in lines if scenario.canary in line.replace('\\"', '"')]
            found += bool(told)
            unmarked += any('tool says, unconfirmed: "' not in line for line in told)
    return {"system": "prompt text", "shown": found, "shown as trusted": unmarked}


def results() -> Iterator[dict[str, Any]]:
    corpus = default_corpus()
    for adapter in (SessionStart, WorldAdapter, Quarantine):
        yield graded(adapter, corpus)
    tools = brought_by("external_tool", corpus)
    yield graded(Quarantine, tools, f"{Quarantine.name}, harmless texts by a tool, too")
    secrets = [one for one in corpus if one.category == "sensitive_data" or not one.malicious]
    own = brought_by("user_input", secrets)
    yield graded(Quarantine, own, "worlddb (asked, secrets masked), secrets by the user")
    yield marked(corpus)


if __name__ == "__main__":
    for line in results():
        print(json.dumps(line))
