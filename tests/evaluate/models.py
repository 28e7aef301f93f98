"""A model behind a local endpoint that answers in every role, by looking for words.

It reads the role out of what it is told, and gives what a right answer of that role looks like: so
the whole way is walked, over real HTTP, without a model.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from models.server import Answer, Seen

LINE = re.compile(r"^\[(\d+)\] \S+ \S+ ([^:]+): (.*)$", re.MULTILINE)
TEACHER = re.compile(r"(?:My )?(\w+) teacher is called (\w+)")


def role_of(seen: Seen) -> str:
    """Return who is asked."""
    if "CORRECT or\nWRONG" in seen.said:
        return "judge"
    return "answerer" if "Memories:" in seen.said else "extractor"


def roles_asked(seen: list[Seen]) -> Counter[str]:
    return Counter(map(role_of, seen))


def model(seen: Seen) -> Answer:
    """Answer in the role that is asked for."""
    return {"judge": judged, "answerer": answered, "extractor": extracted}[role_of(seen)](seen)


def extracted(seen: Seen) -> str:
    facts: list[Any] = []
    date = re.search(r"\d{4}-\d\d-\d\d", seen.said)
    assert date is not None
    for number, speaker, text in LINE.findall(seen.said):
        for topic, name in TEACHER.findall(text):
            facts.append(
                {
                    "text": f"On {date[0]}, {speaker} said that the {topic} teacher is {name}.",
                    "subject": name,
                    "about": [],
                    "message": int(number),
                    "quote": f"{topic} teacher is called {name}",
                }
            )
    told = {
        "summary": f"{date[0]}: " + "; ".join(fact["text"] for fact in facts),
        "entities": [{"name": fact["subject"], "kind": "person", "aliases": []} for fact in facts],
        "facts": facts,
    }
    return f"```json\n{json.dumps(told)}\n```"


def answered(seen: Seen) -> str:
    memories, _, asked = seen.said.rpartition("Memories:")[2].rpartition("Question:")
    topic = re.search(r"my (\w+) teacher", asked)
    for found, name in TEACHER.findall(memories):
        if topic is not None and found == topic[1]:
            return f"The memories speak of {found}.\n**Answer:** {name}"
    return "The answer: none of the memories speaks of it.\nAnswer: I don't know."


def judged(seen: Seen) -> str:
    parts = re.search(r"Reference: (.*)\nAnswer: (.*)\nVerdict:", seen.said)
    assert parts is not None
    return "CORRECT" if parts[1] in parts[2] else "WRONG"
