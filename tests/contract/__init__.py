"""Contracts: tests that every implementation of a protocol passes."""
