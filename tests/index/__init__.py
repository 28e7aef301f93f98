"""What is derived: words, stems, snippets, and the indexes over text and vectors."""
