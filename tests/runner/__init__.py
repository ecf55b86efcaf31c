"""How pytest runs these tests: which tier a test is in, who runs it, how long it may take, and what
is printed. Loaded by the `conftest.py` of the project."""
