"""Lexicon: the words the rules know, as plain sets; short on purpose, and English.

Every list here is of our own making and far from complete. What is in none of them is judged by
its place in the sentence.
"""
