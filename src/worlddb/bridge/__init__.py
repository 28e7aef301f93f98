"""Bridges: language models behind HTTP endpoints or functions, for what the engine lets them do."""
