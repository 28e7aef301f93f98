"""Tests of words, stems and snippets."""
