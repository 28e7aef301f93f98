"""Trials that try to break a store: kills, power cuts, copies, flipped bytes, hostile input."""
