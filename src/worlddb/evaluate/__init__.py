"""Evaluation: how well recall finds, and models answer, what public benchmarks ask for."""
