"""Hundreds of attempts on a live control plane, on SQLite and on PostgreSQL.

The run ends with a line per plane: tried, held.
"""

from collections.abc import Iterator

import pytest

from tests.names import unique
from tests.security.attacks.live.attempts import ATTEMPTS, Attempt
from tests.security.attacks.live.target import ATTACKER, OWN, Target, attacked, the_victims_things


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    environ = {}
    if request.param == "postgres":
        uri = request.getfixturevalue("postgres_uri")
        environ = {"LUCIUS_STORAGE_BACKEND": "postgres", "LUCIUS_DATABASE_URL": uri}
    with attacked(tmp_path_factory.mktemp(unique("attacked")), **environ) as target:
        yield target


def test_there_are_hundreds_of_attempts_with_names_of_their_own() -> None:
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) >= 300
    assert sorted(set(names)) == sorted(names)


@pytest.mark.check
def test_what_is_the_attackers_own_it_may_do(target: Target) -> None:
    """Or everything would be refused for another reason than the one that is tried."""
    submitted = target.ask("POST", "/v1/orchestrate", ATTACKER, json=OWN)
    assert submitted.status_code == 202, submitted.text
    job = submitted.json()["links"]["self"]
    assert target.ask("GET", job, ATTACKER).status_code == 200
    for path in ("/v1/jobs", "/v1/dead-letters", "/v1/artifacts"):
        query = {"tenant_id": ATTACKER, "limit": "1"}
        assert target.ask("GET", path, ATTACKER, params=query).status_code == 200
    assert target.ask("POST", f"{job}:cancel", ATTACKER).status_code == 200


@pytest.mark.check
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attempt_is_held(target: Target, attempt: Attempt) -> None:
    got_through = attempt.run(target)
    assert got_through is None


@pytest.mark.check
def test_after_all_attempts_the_victim_has_what_it_had(target: Target) -> None:
    assert the_victims_things(target) == target.untouched
    assert "Traceback" not in target.plane.stderr()
