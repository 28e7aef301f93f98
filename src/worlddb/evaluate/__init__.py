"""Evaluation: how well recall finds what public benchmarks ask for."""
