"""Claims: what sentences state, which claims hold, and what replaces what."""
