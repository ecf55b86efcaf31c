"""Attacks that got through once, each as a test."""
