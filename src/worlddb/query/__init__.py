"""Query: start sets, steps and their result, a subgraph."""
