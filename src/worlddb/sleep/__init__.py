"""The consolidator: what the engine does with memories while nobody asks. It closes no source."""
