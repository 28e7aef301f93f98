"""Audit: check a store, export and replay its journal, read its history, prove nodes, restore."""
