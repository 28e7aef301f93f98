"""Files: a file tree with versions, stored as worlds."""
