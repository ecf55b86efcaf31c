"""Pure decisions: rows and facts in, rows out. What the tables do not allow is `Refused`."""
