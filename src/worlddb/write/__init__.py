"""Write: nodes and edges → handlers → one commit. Never imports `query` or `recall`."""
