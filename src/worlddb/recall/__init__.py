"""Recall: question → lanes → ranker → hits."""
