"""What people and programs read: results on stdout, everything else on stderr."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]

# Messages of services and names of tenants reach this terminal: they may not steer it.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_STYLES = {
    "SUCCEEDED": "green",
    "FAILED_FINAL": "red",
    "FAILED_RETRY": "yellow",
    "CANCELLED": "yellow",
    "PAUSED": "yellow",
    "IN_PROGRESS": "cyan",
    "PRESENT": "green",
    "ABSENT": "red",
    "ok": "green",
    "FAIL": "red",
}


class Table(NamedTuple):
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def visible(value: object) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", "" if value is None else str(value))


def one_line(value: object) -> str:
    return visible(value).replace("\n", " ")


def moment(value: object) -> str:
    """A time stamp to the second; the machine's fractions help nobody who reads."""
    return re.sub(r"\.\d+", "", visible(value)).replace("+00:00", "Z")


def age(value: object, now: datetime) -> str:
    """How long ago a time stamp was, in the largest unit that fits."""
    try:
        seconds = (now - datetime.fromisoformat(str(value))).total_seconds()
    except (TypeError, ValueError):
        return visible(value)
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


def print_json(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_json_line(value: object) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


def say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


def print_line(text: str) -> None:
    print(visible(text), flush=True)


def print_table(table: Table) -> None:
    """Aligned, never cut: whoever reads it may need a whole id."""
    if not sys.stdout.isatty():
        for row in _padded(table):
            print("  ".join(row).rstrip())
        return
    from rich.text import Text

    screen = console()
    header, *rows = _padded(table)
    screen.print(Text("  ".join(header).rstrip(), style="bold"), soft_wrap=True)
    for row in rows:
        cells = [Text(cell, style=state_style(cell.rstrip())) for cell in row]
        line = Text("  ").join(cells)
        line.rstrip()
        screen.print(line, soft_wrap=True)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair per line; what is not there is left out."""
    shown = [(name, one_line(value)) for name, value in facts if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        print(f"{name:<{width}}  {value}")


def _padded(table: Table) -> list[list[str]]:
    cells = [[name.upper() for name in table.header]]
    cells += [[one_line(cell) for cell in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]


def console(stream: TextIO | None = None) -> "Console":
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False)


def rich_table(table: Table) -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(box=None, pad_edge=False, header_style="bold")
    for name in table.header:
        rich.add_column(name.upper(), overflow="fold")
    for row in table.rows:
        rich.add_row(*(Text(one_line(cell), style=state_style(cell)) for cell in row))
    return rich


def state_style(state: str) -> str:
    return _STYLES.get(state, "")


def joined(values: Iterable[Any] | None, otherwise: str = "") -> str:
    return ", ".join(map(str, values)) if values is not None else otherwise
