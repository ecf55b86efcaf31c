"""Attacks that once succeeded, and their neighbours, each of which must fail."""
