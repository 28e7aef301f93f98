"""The commands, one file per family; each function with `@command` is one command."""
