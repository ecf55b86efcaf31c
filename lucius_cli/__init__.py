"""The `lucius` command."""
