"""Frozen values and the address. No I/O, no clock."""
