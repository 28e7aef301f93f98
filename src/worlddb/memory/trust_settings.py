"""Trust settings: how far a scope trusts origins, what it does with secrets, and its quarantine.

What comes from an origin with the trust `quarantine` is written as a text that never held: no
question finds it, and nothing is read out of it. It waits until somebody who is trusted in full
releases it, as a successor that holds from then on, or rejects it. A rejection can be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from worlddb.errors import ConflictError, InvalidInputError, RejectedError
from worlddb.ingest.text_origins import PENDING, QUARANTINE
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import MemoryPage, Remembered
from worlddb.memory.scope_grants import made_scope
from worlddb.memory.scope_view import find_memory, generations
from worlddb.memory.writes import MemoryWriter
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.drafts import Message
from worlddb.model.origin import FULL, SECRETS, SETTINGS, USUAL_TRUST, check_trust, level_of
from worlddb.model.records import Plain, ScopeName
from worlddb.model.secret_patterns import (
    secrets_in,
    texts_of,
    without_secret_values,
    without_secrets,
    without_sentences,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.trust_levels import TrustLevels

# Secret check: what becomes of keys, tokens, passwords and card numbers in a text to remember.
#
# Every write looks for a hint (`MAYBE`), which costs a few microseconds; only a text that has one
# is searched for secrets, and only a text that has those asks for the rule of its scope.


def checked(
    writer: MemoryWriter, messages: Sequence[Message], scope: Mapping[str, Any]
) -> tuple[list[Message], tuple[str, ...]]:
    """Return messages as the scope wants them, and the kinds of the secrets that were found.

    Raises:
        RejectedError: the scope refuses texts with secrets, or nothing is left of them.
    """
    kinds = {one.kind: None for message in messages for one in secrets_in(message.text)}
    if not kinds:
        return list(messages), ()
    told = ", ".join(kinds)
    rule = _rule(writer, scope, told)
    if rule == "mask":
        messages = [replace(one, text=without_secrets(one.text)) for one in messages]
    elif rule == "leave_out":
        messages = [replace(one, text=without_sentences(one.text)) for one in messages]
        messages = [one for one in messages if one.text.strip()]
        if not messages:
            raise RejectedError(f"the text has nothing but a secret ({told})")
    return list(messages), () if rule == "keep" else tuple(kinds)


def checked_values(
    writer: MemoryWriter, values: tuple[Any, ...], scope: Mapping[str, Any]
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return what stands beside a text (metadata, names, tags) as the scope wants it, and kinds.

    A value that has a secret is left out where a text would lose the sentence.

    Raises:
        RejectedError: the scope refuses texts with secrets.
    """
    kinds: dict[str, None] = {}
    for text in texts_of(values):
        kinds.update((one.kind, None) for one in secrets_in(text))
    if not kinds:
        return values, ()
    rule = _rule(writer, scope, ", ".join(kinds))
    if rule in ("mask", "leave_out"):
        gone = rule == "leave_out"
        values = tuple(without_secret_values(one, leave_out=gone) for one in values)
    return values, () if rule == "keep" else tuple(kinds)


def _rule(writer: MemoryWriter, scope: Mapping[str, Any], told: str) -> str:

    rule = settings_in(writer, scope).secrets
    if rule == "refuse":
        raise RejectedError(f"the text has a secret ({told}); leave it out, then write it again")
    return rule


# Trust settings.

SecretRule: TypeAlias = Literal["keep", "warn", "mask", "leave_out", "refuse"]
SECRET_RULES: tuple[SecretRule, ...] = get_args(SecretRule)
USUAL_SECRETS: SecretRule = "warn"
"""What somebody asks to be remembered is kept as it was said, and the answer says so."""
REJECTED = "rejected"
DECISIONS = {"release": PENDING, "reject": PENDING, "wait": REJECTED}
"""The decisions on a text in quarantine, with the state that each needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettings(Plain):
    """How far each origin is trusted in a scope, and what is done with secrets in texts."""

    trust: Mapping[str, str] = field(default_factory=dict, hash=False)
    secrets: str = USUAL_SECRETS


def settings_of(held: Mapping[str, Any]) -> TrustSettings:
    """Return settings with the usual ones where nothing is said."""
    trust = {origin: str(held.get(origin, usual)) for origin, usual in USUAL_TRUST.items()}
    return TrustSettings(trust=trust, secrets=str(held.get(SECRETS, USUAL_SECRETS)))


def check_secret_rule(given: str) -> str:
    """Return what is to be done with secrets, if it is a rule.

    Raises:
        InvalidInputError: there is no such rule.
    """
    if given not in SECRET_RULES:
        raise InvalidInputError(f"secrets {given!r:.40}: use one of {', '.join(SECRET_RULES)}")
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustKeeper:
    """Reads and changes the trust settings of scopes, and decides on what is in quarantine."""

    writer: MemoryWriter
    reader: MemoryReader

    def settings(self, scope: Mapping[str, Any]) -> TrustSettings:
        """Return the settings of a scope; see `Memory.trust`."""
        with self.writer.engine.store.read() as reader:
            return settings_of(_held(reader, _named(self.writer, scope)))

    def change(
        self,
        trust: Mapping[str, str] | None,
        secrets: str | None,
        everywhere: bool,
        scope: Mapping[str, Any],
    ) -> TrustSettings:
        """Change the settings of a scope, or of all scopes; see `Memory.set_trust`."""
        more: dict[str, str] = dict(check_trust(trust or {}))
        if secrets is not None:
            more[SECRETS] = check_secret_rule(secrets)
        if not more:
            raise InvalidInputError("set_trust: give trust, such as {'web': 'low'}, or secrets")
        if self.writer.scopes.bounds or self.writer.origin is not None:
            raise RejectedError("trust is a matter of administrators; a bound caller may not")
        named = _named(self.writer, scope)
        with self.writer.engine.ingestion.transact(self.writer.actor) as tx:
            ident = ROOT_ID if everywhere else made_scope(tx, named)
            row = tx.reader.node_row(ident) or ROOT_ROW
            own = tx.reader.nodes([row])[row].metadata.get(SETTINGS)
            held = {**(own if isinstance(own, Mapping) else {}), **more}
            tx.add_metadata(ident, {SETTINGS: held})
            return settings_of({**_held(tx.reader, named), **held})

    def quarantined(self, limit: int, cursor: str | None, scope: Mapping[str, Any]) -> MemoryPage:
        """Return what waits in quarantine; see `Memory.quarantine`."""
        return self.reader.list(
            limit=limit,
            cursor=cursor,
            include_retired=True,
            as_of=None,
            known_at=None,
            types=None,
            where={QUARANTINE: PENDING},
            scope=scope,
        )

    def decide(self, id: bytes | str, decision: str, scope: Mapping[str, Any]) -> Remembered:
        """Release or reject what waits in quarantine, or let what was rejected wait again."""
        if decision not in DECISIONS:
            raise InvalidInputError(f"decision {decision!r:.40}: use 'release', 'reject' or 'wait'")
        writer, reach = self.writer, self.writer.scopes.reach(scope)
        with writer.scopes.viewing(reach, ended=True) as view:
            node = find_memory(view, id)[1]
            own = () if writer.origin is None else (writer.origin,)
            if level_of(own, TrustLevels(view.reader).settings(node.parent)) < FULL:
                raise RejectedError("only a caller who is trusted in full may decide that")
            state, needed = node.metadata.get(QUARANTINE), DECISIONS[decision]
            if state != needed:
                told = "does not wait in quarantine" if needed == PENDING else "was not rejected"
                raise ConflictError(f"memory {node.id.short} {told}")
            if decision == "release" and not node.content:
                raise ConflictError(
                    f"{node.id.short} is a whole session; write again what is right in it"
                )
        if decision != "release":
            new = REJECTED if decision == "reject" else PENDING
            with writer.engine.ingestion.transact(writer.actor) as tx:
                tx.add_metadata(node.id, {QUARANTINE: new})
            return self._read(node.id, scope)
        done = writer.release(node, reach)
        return self._read(done.id, scope)

    def _read(self, ident: Id, scope: Mapping[str, Any]) -> Remembered:
        return self.reader.read(ident, as_of=None, known_at=None, scope=scope)


def settings_in(writer: MemoryWriter, scope: Mapping[str, Any]) -> TrustSettings:
    """Return the settings that hold where a write goes."""
    named = writer.scopes.at_home(scope)[0][0]
    with writer.engine.store.read() as reader:
        return settings_of(_held(reader, named))


def _named(writer: MemoryWriter, scope: Mapping[str, Any]) -> ScopeName:
    return writer.scopes.groups(scope)[0][0]


def _held(reader: Reader, named: ScopeName) -> Mapping[str, Any]:
    rows = generations(reader, named)
    world = Id(reader.world(rows[-1]).id) if rows else ROOT_ID
    return TrustLevels(reader).settings(world)
