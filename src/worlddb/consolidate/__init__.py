"""Consolidate: summaries, inferred edges, contradictions, and which memories fade.

Nothing that a user wrote is closed or deleted here.
"""
