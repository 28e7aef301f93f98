"""Ingest: text → draft → plan → one transaction, and the queues that work after it."""
