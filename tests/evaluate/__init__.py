"""Evaluation: benchmark files, figures, and what of them reaches the engine."""
