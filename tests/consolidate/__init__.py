"""The consolidator: summaries, inferences, contradictions, retention."""
