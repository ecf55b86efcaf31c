"""`lucius config`: the settings in force, where each comes from, and what is odd about them."""

import os
from collections.abc import Mapping

from lucius_cli.environment import settings_of
from lucius_cli.output import JsonFlag, Table, print_json, print_table, say


def config(as_json: JsonFlag = False) -> None:
    """Print the effective settings; secrets are masked."""
    from lucius_orchestrator.settings import effective

    settings = settings_of(os.environ)
    rows = [
        *(tuple(map(str, row)) for row in effective(settings, os.environ)),
        *_of_this_command(os.environ),
    ]
    for warning in settings.warnings:
        say(f"warning: {warning}")
    if as_json:
        names = ("variable", "value", "source", "meaning")
        print_json({"settings": [dict(zip(names, row, strict=True)) for row in rows]})
    else:
        print_table(Table(("variable", "value", "source"), [row[:3] for row in rows]))


def _of_this_command(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """What the commands that ask a server go by; the server itself passes it over."""
    from lucius_cli.client import DEFAULT_URL
    from lucius_outbox.redaction import without_credentials
    from lucius_settings.secret import MASK

    url, key = environ.get("LUCIUS_URL"), environ.get("LUCIUS_API_KEY")
    shown = without_credentials(url or DEFAULT_URL)
    return [
        ("LUCIUS_URL", shown, _source(url), "The server that commands ask."),
        ("LUCIUS_API_KEY", MASK if key else "(none)", _source(key), "The key that they ask with."),
    ]


def _source(value: str | None) -> str:
    return "set" if value else "default"
