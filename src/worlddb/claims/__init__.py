"""Claims: what sentences state, which claims hold, and which claims end others."""
