"""Tests of check, export, replay, history, proofs and restore."""
