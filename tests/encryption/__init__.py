"""Encrypted stores: tests that run in processes with the encrypting SQLite."""
