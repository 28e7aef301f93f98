"""The life of a read: seed → ops → subgraph, on one snapshot. Never imports the write room."""
