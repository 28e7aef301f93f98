"""Frozen values and addresses. No I/O, no clock."""
