"""Small files in the formats of the two benchmarks, whose answers any search finds."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

TOPICS = ("gardening", "chess", "sailing", "pottery", "astronomy", "baking", "archery", "origami")


def longmemeval_item(number: int, **changes: Any) -> dict[str, Any]:
    """Return a question whose gold session is the one about its topic, among all others."""
    topic = TOPICS[number % len(TOPICS)]
    sessions = [
        [
            {"role": "user", "content": f"Hello, today I would like to talk about {other}."},
            {"role": "assistant", "content": f"With pleasure. What about {other}?"},
            {
                "role": "user",
                "content": f"My {other} teacher is called Person{place}.",
                **({"has_answer": True} if other == topic else {}),
            },
        ]
        for place, other in enumerate(TOPICS)
    ]
    ids = [
        f"answer_4be1b6b4_{place}" if other == topic else f"ultrachat_{place}"
        for place, other in enumerate(TOPICS)
    ]
    item = {
        "question_id": f"question-{number}",
        "question_type": "single-session-user" if number % 2 else "multi-session",
        "question": f"Who is my {topic} teacher?",
        "answer": f"Person{number % len(TOPICS)}",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/{10 + place} (Wed) 02:21" for place in range(len(TOPICS))],
        "haystack_session_ids": ids,
        "haystack_sessions": sessions,
        "answer_session_ids": [name for name in ids if name.startswith("answer")],
    }
    return item | changes


def longmemeval(count: int = 4) -> list[dict[str, Any]]:
    """Return questions, and one more without an answer."""
    nothing = longmemeval_item(count, question_id="question-9_abs")
    return [*(longmemeval_item(number) for number in range(count)), nothing]


def locomo() -> list[dict[str, Any]]:
    """Return one conversation of two sessions, with questions of all categories."""
    first = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I planted tulips in the garden."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "I won the chess tournament in Lisbon."},
    ]
    second = [
        {
            "speaker": "Ann",
            "dia_id": "D2:1",
            "text": "Look at this!",
            "blip_caption": "a photo of a red kayak",
        },
        {"speaker": "Ben", "dia_id": "D2:2", "text": "My sister moved to Oslo."},
    ]
    questions: list[dict[str, Any]] = [
        {"question": "Where was the chess tournament?", "evidence": ["D1:2"], "category": 4},
        {"question": "Who planted tulips?", "evidence": ["D1:1; D1:1"], "category": 1},
        {"question": "When did the sister move to Oslo?", "evidence": ["D2:2"], "category": 2},
        {"question": "Which boat has Ann, a kayak?", "evidence": ["D2:1"], "category": 3},
        {"question": "What did Ben bake?", "evidence": ["D1:2"], "category": 5},
        {"question": "A key with an error", "evidence": ["D9:9"], "category": 1},
    ]
    return [
        {
            "sample_id": "conv-1",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Ben",
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": first,
                "session_2_date_time": "10:04 am on 19 June, 2023",
                "session_2": second,
                "session_3_date_time": "1:00 pm on 1 July, 2023",
            },
            "qa": questions,
        }
    ]


def save(path: Path, data: Any) -> Path:
    """Write a benchmark file, compressed as its name says."""
    body = json.dumps(data).encode()
    if path.suffix == ".gz":
        body = gzip.compress(body)
    elif path.suffix == ".xz":
        body = lzma.compress(body)
    path.write_bytes(body)
    return path
