"""The frameworks' own tests on our adapters. What fails is listed with the reason, and no more."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from .install import APART, HOME, PYTHON, REPOSITORY, SOURCES, missing

PLUGINS = Path(__file__).parent / "plugins"
DEADLINE_S = 600
BARE = ("-c", os.devnull, "--rootdir", str(PLUGINS))  # Without the settings of this repository.
EXPECTED = {
    # Looks for the tables of SQLite, or calls what only that class has.
    "langgraph-store": {
        "test_vector_store_initialization",
        "test_nonnull_migrations",
        "test_sql_injection_vulnerability",  # Wants an error: a filter there becomes SQL.
        "test_no_running_loop",  # Wants an error: our async store may be called without await.
        "test_ttl_override_default",  # A read gives an item its time to live anew, as documented.
    },
    # Looks at connections, locks, rows and rollbacks of SQLite.
    "openai-agents": {
        "test_sqlite_session_close_closes_worker_thread_connections",
        "test_sqlite_session_reaps_connections_from_exited_worker_threads",
        "test_sqlite_session_closes_retired_connections_before_the_next_allocation",
        "test_sqlite_session_keeps_connections_of_live_worker_threads",
        "test_sqlite_session_closed_rejects_empty_add_items",
        "test_sqlite_session_pop_item_skips_corrupt_most_recent",
        "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows",
        "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows",
        "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows",
        "test_sqlite_session_file_lock_is_shared_across_instances",
        "test_sqlite_session_failed_add_items_releases_write_lock",
        "test_sqlite_session_failed_clear_session_rolls_back",
        "test_sqlite_session_failed_pop_item_releases_write_lock",
        "test_sqlite_session_rollback_failure_evicts_connection",
        "test_sqlite_session_close_retries_quarantined_connection",
        "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome",
    },
    # Writes to the disk by hand, or looks at its rights and links. We have no disk.
    "anthropic": {
        "test_mkdir_parents_not_world_writable_under_permissive_umask",
        "test_view_preserves_crlf_line_endings",
        "test_str_replace_preserves_crlf_line_endings",
        "test_insert_preserves_crlf_line_endings",
        "test_symlink_validation_reject_symlink_pointing_outside_memories",
        "test_symlink_validation_reject_creating_files_through_symlink_pointing_outside",
        "test_symlink_validation_reject_parent_directory_that_is_symlink_pointing_outside",
        "test_validate_path_returns_resolved_path_not_symlink_target",
    },
}


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if why := missing():
        pytest.skip(why)


def run(folder: Path, arguments: Sequence[str], python: Path = PYTHON) -> tuple[set[str], str]:
    """Return the names of the tests that failed, and the last line."""
    paths = [str(REPOSITORY / "src"), str(PLUGINS), str(folder)]
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    assert " passed" in last, done.stdout[-3_000:] + done.stderr[-3_000:]
    print(last)
    return set(re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.MULTILINE)), last


@pytest.mark.parametrize("name", SOURCES)
def test_the_tests_of_a_framework_pass_on_our_class(name: str) -> None:
    source = SOURCES[name]
    options = ["-p", source.plugin, *source.options, *source.tests]
    failed, last = run(HOME / source.package, options)
    assert failed == EXPECTED[name], last


@pytest.mark.parametrize("suite", ["langchain_suite.py", "saver_suite.py", "haystack_suite.py"])
def test_a_suite_that_a_framework_offers_passes(suite: str, tmp_path: Path) -> None:
    failed, last = run(tmp_path, [*BARE, "-o", "asyncio_mode=auto", str(PLUGINS / suite)])
    assert failed == set(), last


ADAPTERS = REPOSITORY / "tests" / "adapters"
OURS = ("test_frameworks.py", "test_more_frameworks.py")


@pytest.mark.parametrize("name", OURS)
def test_our_own_tests_of_the_adapters_pass_with_the_frameworks(name: str, tmp_path: Path) -> None:
    options = [*BARE, "--confcutdir", str(ADAPTERS), "-k", "not crewai", str(ADAPTERS / name)]
    failed, last = run(tmp_path, options)
    assert failed == set(), last
    assert "skipped" not in last


@pytest.mark.parametrize("name", OURS)
def test_our_own_tests_of_crewai_pass_with_it(name: str, tmp_path: Path) -> None:
    options = [*BARE, "--confcutdir", str(ADAPTERS), "-k", "crewai", str(ADAPTERS / name)]
    failed, last = run(tmp_path, options, APART)
    assert failed == set(), last
    assert "skipped" not in last


def test_pdf_and_docx_files_are_read_with_their_libraries(tmp_path: Path) -> None:
    tests = REPOSITORY / "tests" / "memory" / "test_documents.py"
    failed, last = run(tmp_path, [*BARE, "--confcutdir", str(tests.parent), str(tests)])
    assert failed == set(), last
    assert "skipped" not in last
