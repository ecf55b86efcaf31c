"""`lucius services`: how services stand."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from lucius_cli.output import JsonFlag, Table, age, print_json, print_table, say

JsonObject = dict[str, Any]

_HEADER = (
    "service",
    "presence",
    "heard",
    "waiting",
    "oldest",
    "unacknowledged",
    "working",
    "window",
    "capacity",
    "per second",
)


def services(as_json: JsonFlag = False) -> None:
    """List services: what waits for them, what they work on, when they were last heard from."""
    from lucius_cli.client import connected

    with connected(os.environ) as api:
        answer = api.services()
    if as_json:
        print_json(answer)
    elif answer["items"]:
        print_table(service_table(answer["items"], datetime.now(UTC)))
    else:
        say("no services: no protocol names one")


def service_table(items: Iterable[JsonObject], now: datetime) -> Table:
    return Table(_HEADER, [_row(item, now) for item in items])


def _row(item: JsonObject, now: datetime) -> list[str]:
    return [
        str(item["service"]),
        str(item["presence"]),
        _age(item, "heard_at", now),
        str(item["waiting"]),
        _age(item, "oldest_waiting_at", now),
        str(item["unacknowledged"]),
        str(item["working"]),
        str(item["window"]),
        _or_dash(item["capacity"]),
        f"{item['rate_per_second']:.1f}",
    ]


def _age(item: JsonObject, member: str, now: datetime) -> str:
    moment = item[member]
    return "-" if moment is None else age(moment, now)


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)
