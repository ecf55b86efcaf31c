"""Logs of a process in one form: a line per record, without secrets, whatever was logged."""
