"""`serve --stores`: each tenant has a file of its own, and a limited number of them is open."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import worlddb
from faces.http.serving import Process, Site, serving, token
from patience import PATIENCE_S, until
from worlddb.audit.signed_envelope import public_bytes, signing_key
from worlddb.errors import ConflictError, InvalidInputError
from worlddb.faces.face_settings import Settings
from worlddb.faces.http import served_stores
from worlddb.faces.http.access_tokens import make_access, read_tokens
from worlddb.faces.http.served_stores import TenantStores, check_tenants, tenant_stores

TOKENS = (
    token("a-key", tenant="acme", admin=True),
    token("b-key", tenant="blue", admin=True),
    token("ada-key", tenant="acme", bounds={"user_id": ("ada",)}),
    token("c-key", tenant="cyan", admin=True, read_only=True),
    token("root-key", admin=True),
)
TOKENS_FILE = """
[[token]]
value = "acme-token-of-16"
tenant = "acme"
admin = true
[[token]]
value = "blue-token-of-16"
tenant = "blue"
user_id = "ada"
"""


def settings(folder: Path, open_max: int = 2) -> Settings:
    return Settings(
        path="unused.db", stores=str(folder), stores_open=open_max, embedder="none", user_id="u"
    )


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[TenantStores]:
    """Return a folder of stores, of which two may be open."""
    made = tenant_stores(settings(tmp_path / "stores"), str(tmp_path / "stores"))
    yield made
    made.close()


@pytest.fixture
def site(stores: TenantStores) -> Iterator[Site]:
    """Return a server over the stores."""
    with serving(stores, make_access(host="127.0.0.1", tokens=TOKENS)) as made:  # type: ignore[arg-type]
        yield made


def texts(site: Site, **scope: Any) -> list[str]:
    """Return what a token finds."""
    answer = site.post("/v1/recall", query="tea", **scope)
    assert answer.status == 200, answer.body
    return [hit["node"]["content"] for hit in answer.data["hits"]]


def test_each_tenant_has_a_file_of_its_own_and_sees_nothing_else(
    site: Site, stores: TenantStores
) -> None:
    acme, blue = site.as_("a-key"), site.as_("b-key")
    written = acme.post("/v1/memories", text="Acme likes green tea.")
    assert written.status == 200, written.body
    assert blue.post("/v1/memories", text="Blue likes black tea.").status == 200
    assert texts(acme) == ["Acme likes green tea."]
    assert texts(blue) == ["Blue likes black tea."]
    assert blue.get(f"/v1/memories/{written.data['id']}").status == 404
    assert sorted(path.name for path in Path(stores.path).glob("*.db")) == ["acme.db", "blue.db"]
    done, found = acme.tool("memory_recall", query="tea")
    assert done
    assert "green" in str(found)
    done, found = blue.tool("memory_recall", query="tea")
    assert done
    assert "green" not in str(found)


def test_scopes_and_rights_of_a_token_hold_inside_its_tenant(site: Site) -> None:
    ada = site.as_("ada-key")
    assert ada.post("/v1/memories", text="Ada likes tea.").status == 200
    assert ada.post("/v1/memories", text="Bob likes tea.", user_id="bob").status == 403
    assert texts(site.as_("a-key"), user_id="ada") == ["Ada likes tea."]
    assert site.as_("c-key").post("/v1/memories", text="No.").status == 403
    assert site.as_("wrong").post("/v1/recall", query="tea").status == 401
    assert site.post("/v1/recall", query="tea").status == 401


def test_the_settings_of_the_server_hold_in_the_store_of_each_tenant(tmp_path: Path) -> None:
    declared = ({"type": "manages", "acyclic": True},)
    made = replace(settings(tmp_path / "stores"), edge_types=declared, audit_reads=True)
    stores = tenant_stores(made, str(tmp_path / "stores"))
    try:
        with stores.lease("acme") as memory:
            assert "manages" in [one.type for one in memory.edge_types().types]
            memory.write("Acme likes tea.")
            memory.recall("tea")
            assert len(memory.reads().reads) == 1
    finally:
        stores.close()


def test_an_operator_names_the_tenant_in_a_header(site: Site) -> None:
    root = site.as_("root-key")
    named = {"WorldDB-Tenant": "blue"}
    assert root.post("/v1/memories", named, text="The operator likes tea.").status == 200
    assert texts(site.as_("b-key")) == ["The operator likes tea."]
    assert "name the tenant" in root.post("/v1/recall", query="tea").error
    for bad in ("../blue", "Blue", "a/b", ".", "x" * 101):
        assert root.post("/v1/recall", {"WorldDB-Tenant": bad}, query="tea").status == 400
    assert "alone" in site.as_("a-key").post("/v1/recall", named, query="tea").error


def test_metrics_are_for_the_operator_and_health_for_all(site: Site) -> None:
    assert site.get("/health").status == 200
    assert site.as_("a-key").get("/metrics").status == 403
    site.as_("a-key").post("/v1/recall", query="tea")
    assert b"\nworlddb_stores_open 1\n" in site.as_("root-key").get("/metrics").body


def test_a_limited_number_of_stores_is_open_and_the_oldest_is_closed(
    site: Site, stores: TenantStores
) -> None:
    root = site.as_("root-key")
    for number in range(6):
        named = {"WorldDB-Tenant": f"t{number}"}
        assert root.post("/v1/memories", named, text=f"Number {number} likes tea.").status == 200
        assert len(stores._open) <= 2
    assert list(stores._open) == ["t4", "t5"]
    answer = root.post("/v1/recall", {"WorldDB-Tenant": "t0"}, query="tea")
    assert [hit["node"]["content"] for hit in answer.data["hits"]] == ["Number 0 likes tea."]
    assert list(stores._open) == ["t5", "t0"]


def test_many_tenants_at_once_lose_nothing(stores: TenantStores) -> None:
    def write(number: int) -> None:
        with stores.lease(f"t{number % 5}") as memory:
            memory.write(f"Note {number}.", extractor="verbatim")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(30)))
    for tenant in range(5):
        with stores.lease(f"t{tenant}") as memory:
            assert len(memory.list().memories) == 6
            assert memory.db.check() == []


def test_a_store_in_use_is_not_closed_and_who_waits_too_long_is_told(
    stores: TenantStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_stores, "PATIENCE_S", 0.0)
    with stores.lease("a") as first, stores.lease("b"):
        with pytest.raises(ConflictError, match="--stores-open"), stores.lease("c"):
            pass
        assert first.list().memories == ()
    with stores.lease("c") as third:
        assert third.list().memories == ()


def test_closing_waits_for_the_calls_that_are_at_work(stores: TenantStores) -> None:
    began, go_on = threading.Event(), threading.Event()

    def use() -> Any:
        with stores.lease("a") as memory:
            began.set()
            assert go_on.wait(PATIENCE_S)
            return memory.write("Written while the server stops.", extractor="verbatim").id

    with ThreadPoolExecutor(2) as pool:
        using = pool.submit(use)
        assert began.wait(PATIENCE_S)
        closing = pool.submit(stores.close)
        until(lambda: stores._closed)
        assert not closing.done()
        go_on.set()
        assert using.result()
        closing.result()
    with pytest.raises(worlddb.StorageError, match="stops"), stores.lease("b"):
        pass


def test_a_tenant_is_a_file_to_copy_replace_and_delete(site: Site, stores: TenantStores) -> None:
    folder = Path(stores.path)
    acme = site.as_("a-key")
    acme.post("/v1/memories", text="The first likes tea.")
    with worlddb.open(folder / "acme.db") as db:
        db.backup(folder.parent / "copy.db")
    acme.post("/v1/memories", text="The second likes tea.")
    assert len(texts(acme)) == 2
    for old in folder.glob("acme.db*"):  # While the server has it open.
        old.unlink()
    assert texts(acme) == []
    for old in folder.glob("acme.db*"):
        old.unlink()
    shutil.copy(folder.parent / "copy.db", folder / "acme.db")
    assert texts(acme) == ["The first likes tea."]


def test_a_tenant_without_a_token_is_closed(stores: TenantStores) -> None:
    for tenant in ("acme", "blue"):
        with stores.lease(tenant):
            pass
    stores.keep(make_access(host="127.0.0.1", tokens=TOKENS[1:2]))
    assert list(stores._open) == ["blue"]


def test_tokens_and_stores_must_belong_together(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(TOKENS_FILE)
    access = make_access(host="127.0.0.1", tokens=read_tokens(str(file)))
    assert [token.tenant for token in access.tokens] == ["acme", "blue"]
    check_tenants(settings(tmp_path), access)
    with pytest.raises(InvalidInputError, match="--stores DIR"):
        check_tenants(Settings(path="one.db"), access)
    with pytest.raises(InvalidInputError, match="--tokens-file"):
        check_tenants(settings(tmp_path), make_access(host="127.0.0.1", tokens=()))
    loose = make_access(host="127.0.0.1", tokens=[token("x", bounds={"user_id": ("a",)})])
    with pytest.raises(InvalidInputError, match="has no tenant"):
        check_tenants(settings(tmp_path), loose)
    file.write_text(TOKENS_FILE.replace("acme", "../acme", 2))
    with pytest.raises(InvalidInputError, match="tenant"):
        read_tokens(str(file))


def test_the_command_serves_tenants_and_stops(tmp_path: Path) -> None:
    file, folder = tmp_path / "tokens.toml", tmp_path / "stores"
    file.write_text(TOKENS_FILE)
    file.chmod(0o600)
    arguments = ("--stores", str(folder), "--tokens-file", str(file))
    with Process(tmp_path / "unused.db", *arguments) as server:
        assert server.told["store"] == str(folder)
        acme = server.site.as_("acme-token-of-16")
        assert acme.post("/v1/memories", text="Acme likes tea.").status == 200
        assert texts(server.site.as_("blue-token-of-16")) == []
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert sorted(path.name for path in folder.iterdir()) == ["acme.db", "blue.db"]
    assert not (tmp_path / "unused.db").exists()


def test_an_administrator_erases_a_tenant_with_a_receipt(
    site: Site, stores: TenantStores, tmp_path: Path
) -> None:
    root = site.as_("root-key")
    headers = {"WorldDB-Tenant": "gone"}
    assert root.post("/v1/memories", headers=headers, text="Tea is green.").status == 200
    with stores.lease("gone") as memory:
        public = public_bytes(signing_key(memory.db.engine.store))
        memory.set_retention(hold="on", user_id="u")
    whole: dict[str, Any] = {"tenant": "gone", "confirm": "gone", "receipt": True}
    held = root.post("/v1/tenants/erase", **whole)
    assert (held.status, "under legal hold" in held.body.decode()) == (403, True)
    with stores.lease("gone") as memory:
        memory.set_retention(hold="off", user_id="u")
    assert site.as_("a-key").post("/v1/tenants/erase", **whole).status == 403
    assert root.post("/v1/tenants/erase", tenant="gone").status == 400
    in_use = root.post("/v1/tenants/erase", tenant="acme", confirm="acme")
    assert (in_use.status, "revoke its tokens first" in in_use.body.decode()) == (409, True)
    assert root.post("/v1/tenants/erase", tenant="none", confirm="none").status == 404
    assert root.post("/v1/tenants/erase", tenant="../x", confirm="../x").status == 400
    done = root.post("/v1/tenants/erase", **whole)
    assert done.status == 200, done.body
    assert "gone.db" in done.data["files"]
    assert list((tmp_path / "stores").glob("gone*")) == []
    with worlddb.Memory(":memory:", embedder="none") as other:
        verified = other.verify_receipt(done.data["envelope"], public_key=public, again=False)
        assert verified.signed
    # Whoever names the tenant again begins anew.
    again = root.post("/v1/recall", headers=headers, query="tea")
    assert again.data["hits"] == []


def test_a_server_with_one_store_has_no_tenant_to_erase() -> None:
    with (
        worlddb.Memory(":memory:", embedder="none") as memory,
        serving(memory, make_access(host="127.0.0.1", tokens=[token("root", admin=True)])) as made,
    ):
        answer = made.as_("root").post("/v1/tenants/erase", tenant="acme", confirm="acme")
        assert answer.status == 409
