"""Ontology: which edge types a world has, and how it gets another one."""

from __future__ import annotations

from worlddb.model.id import Id
from worlddb.model.limits import Limits
from worlddb.ontology.protocol import EdgeHandler
from worlddb.ontology.registry import Registration, Registry, check_handler, version_of
from worlddb.store.protocol import Store
from worlddb.write.transaction import DEFAULT_ACTOR, transact


class Ontology:
    """The edge types that hold in one world and its interior; made by `db.ontology(world)`."""

    def __init__(self, store: Store, registry: Registry, world: Id, limits: Limits) -> None:
        self._store = store
        self._registry = registry
        self._world = world
        self._limits = limits

    def register(
        self, handler: EdgeHandler, *, functional: bool = False, actor: str = DEFAULT_ACTOR
    ) -> None:
        """Make `handler` answer for its edge type in this world and all worlds inside it.

        The store records the name and version; the program has to be registered again by each
        process that writes the type. *Functional* means at most one live target per source.

        Raises:
            InvalidInputError: the object is no edge handler.
            StorageError, ConflictError: the registration cannot be written now.
        """
        checked = check_handler(handler)
        version = version_of(checked)
        wanted = Registration(
            world=self._world, type=checked.type, version=version, functional=functional
        )
        if wanted not in self.types():
            with transact(
                self._store, self._registry, actor=actor, bulk=False, limits=self._limits
            ) as tx:
                tx.register(self._world, checked.type, version, functional)
        self._registry.load(self._world, checked)

    def types(self) -> list[Registration]:
        """Return the custom types recorded in the store for exactly this world."""
        with self._store.read() as reader:
            return [
                Registration(world=Id(world), type=type_, version=version, functional=functional)
                for world, type_, version, functional in reader.registrations()
                if world == self._world
            ]
