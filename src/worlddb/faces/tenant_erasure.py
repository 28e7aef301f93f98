"""Tenant erasure: removes a tenant's store, the files beside it, and its key for good.

The key is destroyed first. After that the store and its backups are unreadable, even if the program
stops there; a second run removes the remaining files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worlddb.audit.backup_keys import keys_beside
from worlddb.audit.signed_envelope import canonical_json, signed_by, signing_key
from worlddb.audit.store_files import destroy_key_file, is_encrypted
from worlddb.errors import InvalidInputError, RejectedError, StorageError
from worlddb.faces.user_paths import existing_store, tenant_key, tenant_key_file
from worlddb.memory.memory import Memory
from worlddb.memory.receipts import TENANT_ERASURE
from worlddb.model.inputs import Plain

if TYPE_CHECKING:
    from worlddb.faces.face_settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantErasure(Plain):
    """The result of a tenant erasure: the removed files, and whether a key was destroyed.

    `root_state` is the last state of the store; None if the store could not be read. `envelope` is
    this result signed by the store's key, if a receipt was requested. To check it, one needs the
    public key, which must be saved before the erasure.
    """

    tenant: str
    time: datetime
    root_state: str | None
    files: tuple[str, ...]
    key_destroyed: bool
    envelope: Mapping[str, Any] | None = field(default=None, hash=False)


def erase_tenant(settings: Settings, tenant: str, *, receipt: bool) -> TenantErasure:
    """Destroy the key of a tenant, then remove its store and all files beside it.

    Raises:
        InvalidInputError: there is no folder of stores, or no such name.
        RejectedError: a scope of the tenant is under legal hold.
        StorageError: there is no such store, or it cannot be read, or not be removed.
    """
    from worlddb.faces.http.access_tokens import checked_tenant

    if settings.stores is None:
        raise InvalidInputError("erase --tenant: give the folder of the tenants' stores: --stores")
    path = existing_store(os.path.join(settings.stores, f"{checked_tenant(tenant)}.db"))
    file = None if settings.stores_keys is None else tenant_key_file(settings.stores_keys, path)
    signer, root = None, None
    if file is None or file.exists() or not is_encrypted(path):
        key = tenant_key(settings, path)
        with Memory(path, embedder="none", create=False, migrate=False, key=key) as memory:
            held = [str(policy.scope) for policy in memory.retention() if policy.hold]
            if held:
                raise RejectedError(f"{tenant}: under legal hold: {', '.join(held)}; end it first")
            signer = signing_key(memory.db.engine.store) if receipt else None
            root = str(memory.db.root_state)
    elif receipt:
        raise StorageError(f"{file}: the key is gone already, so there is nothing to sign with")
    destroy_key_file(keys_beside(path))  # Of sealed backups.
    destroyed = file is not None and destroy_key_file(str(file))
    done = TenantErasure(
        tenant=tenant,
        time=datetime.now(UTC),
        root_state=root,
        files=_remove_files(path),
        key_destroyed=destroyed,
    )
    if signer is None:
        return done
    told = done.to_dict()
    del told["envelope"]
    envelope = signed_by(signer, TENANT_ERASURE, canonical_json(told))
    return TenantErasure(**{name: getattr(done, name) for name in told}, envelope=envelope)


def _remove_files(path: str) -> tuple[str, ...]:
    """Remove a store and all files whose names begin with its name; return their names."""
    folder, name = os.path.split(path)
    # A tenant's name has no dot, so no other tenant's file has this prefix.
    found = [one for start in ("", ".") for one in Path(folder).glob(f"{start}{escape(name)}*")]
    try:
        for one in sorted(found, reverse=True):  # The store itself comes last.
            if one.is_dir():
                shutil.rmtree(one)
            else:
                one.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"{error.filename}: cannot be removed: {error.strerror}") from error
    return tuple(sorted(one.name for one in found))
