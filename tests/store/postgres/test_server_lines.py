"""What a file has beside it, on a server: the key that signs, and the record of reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import worlddb
from worlddb import Memory
from worlddb.audit.signed_envelope import public_bytes, signing_key
from worlddb.store.postgres.server_schema import READER, WRITER

OPTIONS: dict[str, Any] = {"embedder": "none", "recluster": "off", "audit_reads": True}


@pytest.fixture
def memory(address: str) -> Iterator[Memory]:
    with Memory(address, **OPTIONS) as memory:
        memory.write("I live in Rome.", user_id="ada")
        memory.write("Bob lives in Oslo.", user_id="bob")
        yield memory


def test_reads_are_recorded_and_leave_with_what_is_erased(memory: Memory, address: str) -> None:
    memory.bound(user_id="ada", actor="token ada").recall("Where do I live?")
    memory.recall("Who lives in Oslo?", user_id="bob")
    with Memory(address, **OPTIONS) as other:  # Another process sees the same record.
        assert [one.actor for one in other.reads()] == ["memory", "token ada"]
    assert [one.question for one in memory.reads(user_id="ada")] == ["Where do I live?"]
    memory.erase(user_id="ada", confirm="ada")
    assert [one.scopes for one in memory.reads()] == [("user:bob",)]


def test_receipts_of_recalls_erasures_and_exports_verify(memory: Memory, address: str) -> None:
    pytest.importorskip("cryptography")
    answer = memory.recall("Where do I live?", user_id="ada", receipt=True)
    export = memory.export(user_id="ada", receipt=True)
    erased = memory.erase(user_id="bob", confirm="bob", receipt=True)
    assert answer.receipt is not None
    assert erased.envelope is not None
    with Memory(address, **OPTIONS) as other:
        key = public_bytes(signing_key(other.db.engine.store))
        for receipt in (answer.receipt, export.to_dict(), erased.envelope):
            assert other.verify_receipt(receipt)
            assert other.verify_receipt(receipt, public_key=key)


def test_another_tenant_has_another_key_and_none_of_the_reads(
    memory: Memory, new_tenant: Callable[[], str]
) -> None:
    pytest.importorskip("cryptography")
    answer = memory.recall("Where do I live?", user_id="ada", receipt=True)
    assert answer.receipt is not None
    with Memory(new_tenant(), **OPTIONS) as stranger:
        with pytest.raises(worlddb.StorageError, match="no signing key yet"):
            stranger.verify_receipt(answer.receipt)
        signing_key(stranger.db.engine.store)
        assert not stranger.verify_receipt(answer.receipt).signed
        assert list(stranger.reads()) == []


def test_who_may_only_read_the_store_reads_neither_key_nor_record(
    memory: Memory, server: str
) -> None:
    import psycopg

    memory.recall("Where do I live?", user_id="ada")
    with closing(psycopg.connect(server.partition("&tenant")[0], autocommit=True)) as con:
        con.execute("SET worlddb.tenant = '1'")
        con.execute(f"SET ROLE {READER}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            con.execute("SELECT * FROM worlddb.side_lines")
        con.execute(f"SET ROLE {WRITER}")
        con.execute("SELECT * FROM worlddb.side_lines")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            con.execute("UPDATE worlddb.side_lines SET line = ''")
