"""Artifacts as people read them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lucius_cli.failures import Refused
from lucius_cli.output import Table, moment, print_facts, print_json, print_line, print_table, say

if TYPE_CHECKING:
    from lucius_artifacts.client import ArtifactsClient

JsonObject = dict[str, Any]

_LARGEST_PAGE = 200
_PUBLISHED = "published"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_NEXT_UNIT = 1024


def listed(
    client: "ArtifactsClient",
    name: str | None,
    tenant: str | None,
    limit: int | None,
    cursor: str | None,
) -> JsonObject:
    """As many as asked for, over as many pages as that takes; None: all of them."""
    items: list[JsonObject] = []
    while limit is None or len(items) < limit:
        size = _LARGEST_PAGE if limit is None else min(_LARGEST_PAGE, limit - len(items))
        if name is None:
            page = client.artifacts(tenant, limit=size, cursor=cursor)
            items += page["artifacts"]
        else:
            page = client.versions(name, tenant, limit=size, cursor=cursor)
            items += page["versions"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    return {"items": items, "next_cursor": cursor}


def print_list(page: JsonObject, name: str | None) -> None:
    items = page["items"]
    if items:
        print_table(_artifact_table(items) if name is None else _version_table(items))
    else:
        say("no artifacts" if name is None else f"no versions of {name}")
    if page["next_cursor"] is not None:
        say("there are more: --limit N or --all")


def print_published(version: JsonObject, *, as_json: bool) -> None:
    """The uris of its files, or `Refused` with the reason why nobody can read them."""
    is_published = version["state"] == _PUBLISHED
    if as_json:
        print_json(version)
    elif is_published:
        for entry in version["entries"]:
            print_line(entry["uri"])
    if not is_published:
        reason = version.get("reason")
        raise Refused(f"{named(version)} is in quarantine: {reason}; the same command asks again")


def print_report(report: JsonObject) -> None:
    """What a collection did; what it found nothing of is left out."""
    counted = [(name.replace("_", " "), count) for name, count in report.items() if count]
    print_facts(counted)


def print_candidates(candidates: Sequence[JsonObject], *, more: bool) -> None:
    rows = [
        ("goes" if each["goes"] else "stays", each["subject"], size(each["bytes"]), each["why"])
        for each in candidates
    ]
    if rows:
        print_table(Table(("", "content", "size", "why"), rows))
    else:
        say("there is nothing that nobody needs")
    if more:
        say("there are more")


def named(version: JsonObject) -> str:
    return f"{version['name']}/v{version['version']}"


def size(count: int) -> str:
    """In the largest unit in which it is one or more."""
    amount, units = float(count), list(_UNITS)
    while amount >= _NEXT_UNIT and len(units) > 1:
        amount /= _NEXT_UNIT
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def _artifact_table(items: Sequence[JsonObject]) -> Table:
    rows = [
        (each["name"], _number(each["published"]), _number(each["latest"]), _at(each["changed_at"]))
        for each in items
    ]
    return Table(("name", "published", "latest", "changed"), rows)


def _version_table(items: Sequence[JsonObject]) -> Table:
    """A row for each file."""
    rows = [
        (
            named(version),
            version["state"],
            size(entry["length"]),
            _at(version["published_at"] or version["created_at"]),
            entry["uri"],
        )
        for version in items
        for entry in version["entries"]
    ]
    return Table(("version", "state", "size", "since", "uri"), rows)


def _number(number: int | None) -> str:
    return "" if number is None else f"v{number}"


def _at(value: object) -> str:
    return moment(value)
