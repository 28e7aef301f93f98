"""Tests to inherit, for those who write a part of WorldDB themselves. Needs pytest."""

from worlddb.testing.store_contract import StoreContract

__all__ = ["StoreContract"]
