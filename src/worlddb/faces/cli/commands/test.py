"""`worlddb test`: whether a store answers what a file of memory tests expects."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_files import given_json, landing, opened, private_opener
from worlddb.faces.cli.command_options import EMBEDDER, command, option, wants_json
from worlddb.faces.cli.command_store import open_memories
from worlddb.faces.cli.exit_codes import FOUND, OK
from worlddb.faces.cli.terminal import one_line, paint, print_json
from worlddb.model.visible_text import visible

if TYPE_CHECKING:
    from worlddb.evaluate.memory_tests import TestVerdict

YAML_ENDS = (".yaml", ".yml")


@command(
    "test FILE...",
    option("files", "FILE", "memory tests, JSON or YAML; '-' is stdin", nargs="+"),
    option("--junit", "PATH", "also write the report as JUnit XML, for a CI system"),
    EMBEDDER,
)
def run(args: argparse.Namespace) -> int:
    """Test what the store answers.

    Ask the questions of a file and compare the answers: a memory is among the first
    hits, another one is never a hit, the confidence is above or below a number. The
    exit code is 0 if every test passes and 1 if one does not. Nothing is written, and
    the recalls are not counted. A file is JSON; with PyYAML (the extra 'yaml'), it may
    be YAML. docs/testing.md has the format.

    Examples:
      worlddb test beliefs.json                      # on your own store
      worlddb test *.yaml --db team.db --junit r.xml # in CI
    """
    from worlddb.evaluate.memory_tests import read_tests, run_tests

    files = {name: read_tests(_read(name), name) for name in args.files}
    with open_memories(args, asks=True) as memory:
        # What is tested must not change by being tested: recalls are counted no more.
        memory.db.engine.recalls.close()
        found = {name: run_tests(memory, tests) for name, tests in files.items()}
    if args.junit is not None:
        with (
            landing(args.junit, replace=True) as path,
            open(path, "w", encoding="utf-8", opener=private_opener) as file,
        ):
            file.write(junit_xml(found))
    verdicts = [one for suite in found.values() for one in suite]
    failed = sum(not one.passed for one in verdicts)
    if wants_json(args):
        suites = {name: [_data(one) for one in suite] for name, suite in found.items()}
        print_json({"tests": len(verdicts), "failed": failed, "files": suites})
    else:
        for one in verdicts:
            _print(one)
        print(f"{len(verdicts) - failed} passed, {failed} failed")
    return FOUND if failed else OK


def _read(name: str) -> Any:
    with opened(name) as file:
        try:
            text = file.read().decode()
        except UnicodeDecodeError:
            raise InvalidInputError(f"{name}: is not UTF-8 text") from None
    if not name.endswith(YAML_ENDS):
        return given_json(text, name)
    try:
        # A reader of our own would understand a part of YAML and read the rest differently.
        import yaml
    except ImportError:
        raise InvalidInputError(
            f'{name}: YAML needs PyYAML (not installed); run: pip install "worlddb[yaml]", or '
            "write the tests as JSON"
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidInputError(f"{name}: is not YAML: {one_line(str(error))}") from None


def _data(one: TestVerdict) -> dict[str, Any]:
    return {"name": one.name, "passed": one.passed} | asdict(one)


def _print(one: TestVerdict) -> None:
    mark = paint("ok  ", "green") if one.passed else paint("FAIL", "red")
    print(f"{mark}  {one_line(one.name)}")
    for failure in one.failures if one.error is None else (one.error,):
        print(f"      {one_line(failure)}")
    for number, hit in enumerate(() if one.passed else one.hits, 1):
        print(f"      {number:>2}. {one_line(hit)}")


def junit_xml(found: dict[str, list[TestVerdict]]) -> str:
    """Return a report in the format of JUnit, which CI systems read."""
    from xml.etree import ElementTree

    top = ElementTree.Element("testsuites")
    for name, verdicts in found.items():
        counts = {
            "tests": len(verdicts),
            "failures": sum(bool(one.failures) for one in verdicts),
            "errors": sum(one.error is not None for one in verdicts),
        }
        counted = {key: str(value) for key, value in counts.items()}
        suite = ElementTree.SubElement(top, "testsuite", {"name": visible(name), **counted})
        for one in verdicts:
            names = {"name": visible(one.name), "classname": "worlddb"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if one.failures:
                told = {"message": visible("; ".join(one.failures))}
                failure = ElementTree.SubElement(case, "failure", told)
                failure.text = visible("\n".join((*one.failures, "hits:", *one.hits)))
            elif one.error is not None:
                ElementTree.SubElement(case, "error", {"message": visible(one.error)})
    ElementTree.indent(top)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}{ElementTree.tostring(top, 'unicode')}\n"
