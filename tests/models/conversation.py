"""A conversation, what a model tells of it, and the draft that comes of that."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from worlddb.model.records import Draft, DraftNode, Message
from worlddb.models.model_tasks import LlmExtractor

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
CHAT = [
    Message(text="I moved to Oslo last week, and Rachel Adams found me the flat.", at=NOON),
    Message(text="How nice! Is Rachel your agent?", speaker="assistant", at=NOON),
    Message(text="Yes, my agent. I’ve bought  three lamps for 90 euros.", at=NOON),
]
TOLD: dict[str, Any] = {
    "summary": "On 2026-05-20 the user said they moved to Oslo and bought three lamps.",
    "entities": [
        {"name": "user", "kind": "person", "aliases": ["I", "me"]},
        {"name": "Rachel Adams", "kind": "person", "aliases": ["Rachel", "my agent", "Rae"]},
        {"name": "Oslo", "kind": "place", "aliases": []},
        {"name": "Zurich", "kind": "place", "aliases": []},
    ],
    "facts": [
        {
            "text": "On 2026-05-13, the user moved to Oslo.",
            "subject": "user",
            "about": ["Oslo"],
            "date": "2026-05-13",
            "message": 0,
            "quote": "I moved to Oslo last week",
            "relation": "lives_in",
            "value": "Oslo",
            "functional": True,
        },
        {
            "text": "Rachel Adams is the user's agent.",
            "subject": "Rachel",
            "about": ["user"],
            "date": None,
            "message": 2,
            "quote": "yes, my agent.",
            "relation": None,
            "value": None,
            "functional": False,
        },
        {
            "text": "The user bought three lamps for 90 euros.",
            "subject": "user",
            "about": [],
            "date": "2026-05-20",
            "message": 0,
            "quote": "I've bought three lamps",
            "relation": "owns",
            "value": "three lamps",
            "functional": False,
        },
        {
            "text": "The user will marry.",
            "subject": "Zurich",
            "about": [],
            "date": "soon",
            "message": 99,
            "quote": "we will marry",
            "relation": "",
            "value": "",
            "functional": None,
        },
    ],
}


def extracted(told: Any = TOLD, messages: list[Message] = CHAT, **options: Any) -> Draft:
    text = told if isinstance(told, str) else json.dumps(told)
    return LlmExtractor(lambda asked: text, **options).extract(messages, NOON)


def of_type(draft: Draft, type: str) -> list[DraftNode]:
    return [node for node in draft.nodes if node.type == type]


def edges(draft: Draft, type: str, source: str) -> dict[str, dict[str, Any]]:
    return {
        edge.target: dict(edge.metadata)
        for edge in draft.edges
        if (edge.type, edge.source) == (type, source)
    }
