"""Prompting: what the models of a run are told, and what is read out of their answers.

    extract.txt   what the extractor reads out of a session (by default the one of the bridge)
    answer.txt    {date} {memories} {question} ──▶ reasoning, then "Answer: …"
    judge.txt     {question} {reference} {answer} ──▶ CORRECT or WRONG

A folder of yours may hold some of these files; the others stay ours. Fields may have the names that
the paper's prompts give them. Nobody gets the benefit of a doubt: what does not begin with the word
CORRECT is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from blake3 import blake3

from worlddb.bridge.asking import prompt_text
from worlddb.bridge.lenient import without_thoughts
from worlddb.errors import InvalidInputError

FIELDS = {"answer": ("memories", "question"), "judge": ("question", "reference", "answer")}
"""What a prompt has to leave room for."""
SAME = {"question_date": "date", "turns_block": "memories", "generated": "answer"}
"""Fields by the names of the paper's prompts."""
_FIELD = re.compile(r"\{([a-z_]+)\}")
_ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
_CORRECT = re.compile(r"CORRECT(?![A-Z])")
_WRONG = re.compile(r"(?:WRONG|INCORRECT)(?![A-Z])")
_AROUND = " \t\r\n*_`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What each role is told."""

    extract: str
    answer: str
    judge: str

    def digests(self) -> dict[str, str]:
        """Return what tells one set of prompts from another."""
        return {
            name: blake3(getattr(self, name).encode("utf-8", "replace")).hexdigest(8)
            for name in self.__slots__
        }


def load_prompts(folder: str | None = None) -> Prompts:
    """Return the prompts of a folder, and our own where it has none.

    Raises:
        InvalidInputError: there is no such folder, or a prompt has no place for what it is about.
    """
    if folder is not None and not Path(folder).is_dir():
        raise InvalidInputError(f"prompts: {folder} is no folder")
    texts = {}
    for name in Prompts.__slots__:
        own = Path(folder, f"{name}.txt") if folder is not None else None
        if own is not None and own.exists():
            texts[name] = prompt_text(own, name)
        elif name == "extract":
            texts[name] = prompt_text(None, name)
        else:
            texts[name] = _ours(name)
        there = {SAME.get(field, field) for field in _FIELD.findall(texts[name])}
        missing = set(FIELDS.get(name, ())) - there
        if missing:
            raise InvalidInputError(f"prompts: {name}.txt has no {{{min(missing)}}}")
    return Prompts(**texts)


def _ours(name: str) -> str:
    return files("worlddb.evaluate").joinpath("prompts", f"{name}.txt").read_text("utf-8")


def filled(prompt: str, **values: str) -> str:
    """Return a prompt with its fields filled; braces in the values, or of no field, stay."""
    return _FIELD.sub(lambda field: values.get(SAME.get(field[1], field[1]), field[0]), prompt)


def answer_in(reply: str) -> str:
    """Return what follows the last "Answer:" of a reply; all of it if there is none."""
    text = without_thoughts(reply)
    places = list(_ANSWER.finditer(text))
    found = text[places[-1].end() :] if places else text
    return found.strip(_AROUND if places else None)


def is_correct(verdict: str) -> bool:
    """Return whether a judge's reply begins with the word CORRECT."""
    return _CORRECT.match(without_thoughts(verdict).strip().upper()) is not None


def is_clear(verdict: str) -> bool:
    """Return whether a judge's reply is a verdict at all; what is none counts as wrong."""
    said = without_thoughts(verdict).strip().upper()
    return is_correct(verdict) or _WRONG.match(said) is not None
