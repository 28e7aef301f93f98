"""The life of a write: nodes and edges → handlers → commit. Never imports the read room."""
