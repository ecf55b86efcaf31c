"""How a program of ours is set: a table of environment variables, read once when it starts.

Each program has its own table; what is here reads one, tells everything that is wrong with it at
once, and shows what is in force without its secrets.
"""
