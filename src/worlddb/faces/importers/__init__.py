"""Importers: what other programs remember, item by item, through the public calls of Memory.

PATH ──reader of its kind──▶ ImportedItem … ──import_items()──▶ Memory.write, each item once
"""
