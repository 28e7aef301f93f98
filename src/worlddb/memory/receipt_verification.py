"""Receipt verification: has this store's key signed a receipt, and is it still so?

A receipt of a recall is asked again, one of an erasure is compared with the store, and one of an
export with the export that it stands in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from worlddb.audit.erasure_receipt import KIND as ERASURE
from worlddb.audit.erasure_receipt import erasure_differences
from worlddb.audit.signed_envelope import KEY_BYTES, opened_payload, public_bytes, signing_key
from worlddb.errors import FormatError, InvalidInputError
from worlddb.memory.recall_receipt import KIND as RECALL
from worlddb.memory.recall_receipt import Verification, asked_again
from worlddb.memory.scope_export import KIND as EXPORT
from worlddb.memory.scope_export import PARTS, digest_of
from worlddb.memory.scope_view import CallerScopes
from worlddb.world_db import WorldDB

TENANT_ERASURE = "application/vnd.worlddb.tenant-erasure.1+json"
KINDS = (RECALL, ERASURE, EXPORT, TENANT_ERASURE)
WRAPPED = ("receipt", "envelope")
"""Under which name an answer has its receipt: a recall and an export; an erasure."""


def verified(
    db: WorldDB,
    own: CallerScopes,
    given: Mapping[str, Any],
    public_key: bytes | str | None,
    again: bool,
) -> Verification:
    """Verify a receipt for the caller with these scopes; see `Memory.verify_receipt`."""
    if not isinstance(given, Mapping):
        raise FormatError("this is no receipt: a receipt is a JSON object")
    receipt = receipt_in(given)
    kind = next((one for one in KINDS if one == receipt.get("payloadType")), RECALL)
    payload = opened_payload(receipt, kind, _public_key(db, public_key))
    if payload is None:
        return Verification(signed=False, same=None)
    if not again or kind == TENANT_ERASURE:  # No store is left to compare that one with.
        return Verification(signed=True, same=None)
    if kind == RECALL:
        return asked_again(db, own, payload, receipt.get("asked"))
    told = json.loads(payload)
    if kind == ERASURE:
        if told["scope"]:  # A bound caller may verify only receipts of its own scope.
            own.acting(told["scope"]).groups(told["scope"])
        return _compared(erasure_differences(db.engine.store, told))
    if not all(isinstance(given.get(part), list) for part in PARTS):
        raise InvalidInputError("this receipt has no export around it; check its signature alone")
    is_same = told["digest"] == str(digest_of({part: given[part] for part in PARTS}))
    return _compared(() if is_same else ("digest",))


def receipt_in(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the receipt in the answer of a call; a receipt alone is returned as it is."""
    found = (given[name] for name in WRAPPED if isinstance(given.get(name), Mapping))
    return next(found, given)


def _compared(differences: tuple[str, ...]) -> Verification:
    return Verification(signed=True, same=not differences, differences=differences)


def _public_key(db: WorldDB, given: bytes | str | None) -> bytes:
    if given is None:
        return public_bytes(signing_key(db.engine.store, create=False))
    try:
        key = bytes.fromhex(given.strip()) if isinstance(given, str) else bytes(given)
    except (ValueError, TypeError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInputError("public_key: give 32 bytes or 64 hexadecimal digits")
    return key
