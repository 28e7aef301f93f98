"""Embedders behind one protocol, and the composer that gives a world its vector."""
