"""English: the language pack that reads names, dates and claims from English texts.

`worlddb.language.english.english_reader.EnglishReader` is the entry point; the word lists are the
`*.txt` files beside the modules.
"""
