"""Files: a world tree as a file tree with versions."""
