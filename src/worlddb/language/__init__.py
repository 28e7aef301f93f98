"""Language: words, stems and snippets; pure functions on text."""
