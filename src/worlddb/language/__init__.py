"""Language: words, stems, dates, names and snippets; pure functions on text."""
