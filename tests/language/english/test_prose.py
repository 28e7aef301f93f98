"""The grammar file: every pattern compiles, every one is used, and none is missing."""

from __future__ import annotations

import re
from pathlib import Path

import worlddb.language.english
from worlddb.language.english.prose import Patterns

PACK = Path(worlddb.language.english.__file__).parent
MODULES = [*PACK.glob("*.py"), PACK.parent / "ranking_features.py"]  # the latter reads questions
SECTION = re.compile(r"^\[(\w+)\]$")
ENTRY = re.compile(r"^(\w+) (?:[ims]+ )?= ")
PATTERNS = re.compile(r'^(_[A-Z]+) = Patterns\("(\w+)"\)$', re.MULTILINE)


def entries() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    section = ""
    for line in (PACK / "grammar.txt").read_text(encoding="utf-8").splitlines():
        if match := SECTION.match(line):
            section = match[1]
        elif match := ENTRY.match(line):
            found.setdefault(section, []).append(match[1])
    return found


def test_every_entry_has_a_name_of_its_own_and_compiles() -> None:
    for section, names in entries().items():
        assert len(set(names)) == len(names)
        for name in names:
            assert getattr(Patterns(section), name).pattern


def used() -> set[tuple[str, str]]:
    """Return the section and the name of each pattern that a module uses by its name."""
    return {
        (section, name)
        for module in MODULES
        for text in [module.read_text(encoding="utf-8")]
        for variable, section in PATTERNS.findall(text)
        for name in re.findall(rf"\b{variable}\.([A-Z_]+)\b", text)
    }


def test_every_pattern_that_a_module_uses_is_there() -> None:
    assert used()
    for section, name in used():
        assert name in entries()[section], (section, name)


def test_every_entry_is_used_by_a_module_or_by_another_entry() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in MODULES)
    grammar = (PACK / "grammar.txt").read_text(encoding="utf-8")
    frames = (PACK / "frames.txt").read_text(encoding="utf-8")
    for section, names in entries().items():
        for name in names:
            stem = name.split("_", 1)
            made = [f'"{stem[1]}"', "{kind}"] if len(stem) == 2 else []
            in_text = f"%{name}%" in grammar or f"{{{name}}}" in frames
            in_code = (section, name) in used() or any(use in code for use in (f'"{name}"', *made))
            assert in_text or in_code, name
