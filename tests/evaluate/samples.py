"""Small files in the formats of the benchmarks, whose answers any search finds."""

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
        _asked(4, "Where was the chess tournament?", "D1:2", answer="Lisbon"),
        _asked(1, "Who planted tulips?", "D1:1; D1:1", answer="Ann"),
        _asked(2, "When did the sister move to Oslo?", "D2:2", answer="19 June 2023"),
        _asked(3, "Which boat has Ann, a kayak?", "D2:1", answer=1),
        _asked(5, "What did Ben bake?", "D1:2", adversarial_answer="bread"),
        _asked(1, "A key with an error", "D9:9", answer="nothing"),
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


def _asked(category: int, question: str, evidence: str, **answer: Any) -> dict[str, Any]:
    return {"question": question, "evidence": [evidence], "category": category, **answer}


def dmr_item(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a chat of three sessions; what is asked for was said in the first."""
    instrument = ("cello", "harp", "tuba", "zither")[number % 4]
    first = [
        {"text": "Hello! Do you make any music?"},
        {"text": f"Yes, I have played the {instrument} since school."},
    ]
    second = [{"text": "It rains again."}, {"text": "Then stay inside and read."}]
    last = [
        {"id": "Speaker 1", "text": "Good morning!", "convai2_id": "x"},
        {"id": "Speaker 2", "text": "Good morning, I have just got up."},
    ]
    item = {
        "personas": [["I like rain."], [f"I play the {instrument}, secretly."]],
        "dialog": last,
        "metadata": {"initial_data_id": f"valid_{number}", "session_id": 4},
        "previous_dialogs": [
            {"dialog": first, "time_back": "12 days 3 hours ago", "personas": []},
            {"dialog": second, "time_num": 2, "time_unit": "days"},
        ],
        "summary_speaker_2": [f"Secretly plays the {instrument}."],
        "self_instruct": {
            "B": "Hey, do you remember which instrument I have played since school?",
            "A": f"The {instrument.title()}, since school!",
        },
    }
    return item | changes


def dmr(count: int = 3) -> list[dict[str, Any]]:
    return [dmr_item(number) for number in range(count)]


def save_lines(path: Path, items: list[dict[str, Any]]) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def save(path: Path, data: Any) -> Path:
    """Write a benchmark file, compressed as its name says."""
    body = json.dumps(data).encode()
    if path.suffix == ".gz":
        body = gzip.compress(body)
    elif path.suffix == ".xz":
        body = lzma.compress(body)
    path.write_bytes(body)
    return path
