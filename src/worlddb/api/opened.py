"""Opened: what every part of the public interface works on."""

from __future__ import annotations

from collections.abc import Callable

from worlddb.index.search import Search
from worlddb.ingest.background_queue import Later
from worlddb.model.inputs import Limits
from worlddb.ontology.registry import Registry
from worlddb.sleep.tally import Tally
from worlddb.store.protocol import Store


class Opened:
    """An open store with its ontology, its search, its limits and its clock."""

    _store: Store
    _registry: Registry
    _search: Search
    _later: Later
    _tally: Tally
    _limits: Limits
    _clock: Callable[[], int]
