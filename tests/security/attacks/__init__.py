"""Attacks that got through once, one test each."""
