"""Every row of the table of edge types, one module per family, and the types people bring."""
