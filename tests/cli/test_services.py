"""`lucius services` beside a server that is a double."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cli.double import Answer, Double, problem
from tests.cli.shell import Shell

PATH = "/v1/services"


def service(name: str, **members: Any) -> dict[str, Any]:
    return {
        "service": name,
        "presence": "UNKNOWN",
        "heard_at": None,
        "waiting": 0,
        "oldest_waiting_at": None,
        "oldest_waiting_seconds": None,
        "unacknowledged": 0,
        "working": 0,
        "window": 1,
        "capacity": None,
        "instances": 0,
        "rate_per_second": 0.0,
        "has_backlog": False,
        "lanes": [],
        **members,
    }


def ago(**parts: float) -> str:
    return (datetime.now(UTC) - timedelta(**parts)).isoformat()


def listed(*items: dict[str, Any]) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": None})


def test_services_are_a_table(client: Shell, server: Double) -> None:
    busy = service(
        "ocr",
        presence="PRESENT",
        heard_at=ago(minutes=2.5),
        waiting=1200,
        oldest_waiting_at=ago(hours=3.5),
        unacknowledged=3,
        working=8,
        window=12,
        capacity=8,
        rate_per_second=4.26,
    )
    server.answers("GET", PATH, listed(service("embedding"), busy))
    run = client("services")
    assert (run.code, run.err) == (0, "")
    header, *rows = [line.split() for line in run.out.splitlines()]
    assert " ".join(header) == (
        "SERVICE PRESENCE HEARD WAITING OLDEST UNACKNOWLEDGED WORKING WINDOW CAPACITY PER SECOND"
    )
    assert [" ".join(row) for row in rows] == [
        "embedding UNKNOWN - 0 - 0 0 1 - 0.0",
        "ocr PRESENT 2m 1200 3h 3 8 12 8 4.3",
    ]
    assert server.asked[0].query == {}


def test_json_is_the_answer_of_the_server(client: Shell, server: Double) -> None:
    item = service("ocr", lanes=[{"lane": 3, "waiting": 1}])
    server.answers("GET", PATH, listed(item))
    assert client("services", "--json").json == {"items": [item], "next_cursor": None}


def test_no_services_are_said(client: Shell, server: Double) -> None:
    server.answers("GET", PATH, listed())
    assert client("services") == (0, "", "no services: no protocol names one\n")


def test_a_key_with_some_tenants_is_refused_in_a_sentence(client: Shell, server: Double) -> None:
    detail = "read_services needs a caller with all tenants"
    server.answers("GET", PATH, problem(403, "FORBIDDEN", "Forbidden", detail=detail))
    run = client("services")
    assert run.code == 1
    assert detail in run.err
