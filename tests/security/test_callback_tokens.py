"""Tokens of callbacks, and the key that signs them."""

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.security.callback_tokens import CallbackTokens, load_or_create_key
from tests.runner.deadlines import DEADLINE
from tests.security.clock import START, Clock
from tests.security.refusals import refused

KEY, NEXT_KEY = b"k" * 32, b"n" * 32
ENDS = START + timedelta(hours=1)


class Bound(NamedTuple):
    job_id: str = "job-1"
    step_id: str = "job-1:0"
    attempt_no: int = 1
    lease_id: str = "lease-1"


BOUND = Bound()
OTHERS = [
    BOUND._replace(job_id="job-2"),
    BOUND._replace(step_id="job-1:1"),
    BOUND._replace(attempt_no=2),
    BOUND._replace(attempt_no=11),
    BOUND._replace(lease_id="lease-2"),
    BOUND._replace(lease_id=""),
    BOUND._replace(job_id="job-1j", step_id="ob-1:0"),
    BOUND._replace(job_id="job-1\ud800"),
]


@pytest.fixture
def tokens(clock: Clock) -> CallbackTokens:
    return CallbackTokens([KEY], clock)


def test_a_token_passes_for_what_it_was_issued_for(tokens: CallbackTokens) -> None:
    tokens.check(tokens.issue(*BOUND, ENDS), *BOUND)


def test_a_producer_is_proven_by_the_token_of_its_own_attempt_alone(tokens: CallbackTokens) -> None:
    tenant, (job_id, step_id, attempt_no, lease_id) = "acme", BOUND
    token = tokens.issue_producer(tenant, job_id, step_id, attempt_no, ENDS)
    tokens.check_producer(token, tenant, job_id, step_id, attempt_no)
    for other in (
        ("bolt", job_id, step_id, attempt_no),
        (tenant, "job-2", step_id, attempt_no),
        (tenant, job_id, "job-1:1", attempt_no),
        (tenant, job_id, step_id, 2),
    ):
        with refused(ErrorCode.FORBIDDEN):
            tokens.check_producer(token, *other)
    callback = tokens.issue(job_id, step_id, attempt_no, lease_id, ENDS)
    of_the_lease = tokens.issue(job_id, step_id, attempt_no, tenant, ENDS)
    for forged in ("", "1.2.3", token[:-1], token + "x", callback, of_the_lease):
        with refused(ErrorCode.FORBIDDEN):
            tokens.check_producer(forged, tenant, job_id, step_id, attempt_no)
    with refused(ErrorCode.UNAUTHENTICATED):
        tokens.check(token, *BOUND)


def test_a_producers_token_ends(tokens: CallbackTokens, clock: Clock) -> None:
    token = tokens.issue_producer("acme", "job-1", "step-1", 1, ENDS)
    clock.now = ENDS
    with refused(ErrorCode.FORBIDDEN):
        tokens.check_producer(token, "acme", "job-1", "step-1", 1)


def test_a_token_is_short_and_fits_in_a_header_and_a_url(tokens: CallbackTokens) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,110}", tokens.issue(*BOUND, ENDS))


def test_a_token_does_not_show_the_lease(tokens: CallbackTokens) -> None:
    assert "lease" not in tokens.issue(*BOUND, ENDS)


@pytest.mark.parametrize("other", OTHERS)
def test_a_token_is_forbidden_for_anything_else(tokens: CallbackTokens, other: Bound) -> None:
    token = tokens.issue(*BOUND, ENDS)
    with refused(ErrorCode.FORBIDDEN, hiding=token):
        tokens.check(token, *other)


PARTS = st.text("1,:a", max_size=3)
BOUNDS = st.builds(Bound, PARTS, PARTS, st.integers(1, 12), PARTS)


@given(BOUNDS, BOUNDS)
def test_a_token_passes_for_its_own_ids_alone(issued: Bound, asked: Bound) -> None:
    tokens = CallbackTokens([KEY], Clock())
    token = tokens.issue(*issued, ENDS)
    if issued == asked:
        tokens.check(token, *asked)
    else:
        with refused(ErrorCode.FORBIDDEN):
            tokens.check(token, *asked)


def test_a_token_ends_when_it_was_said_to_end(tokens: CallbackTokens, clock: Clock) -> None:
    token = tokens.issue(*BOUND, ENDS)
    clock.now = ENDS - timedelta(microseconds=1)
    tokens.check(token, *BOUND)
    clock.now = ENDS
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token):
        tokens.check(token, *BOUND)


def test_a_token_that_ended_says_nothing_about_what_it_was_for(
    tokens: CallbackTokens, clock: Clock
) -> None:
    token = tokens.issue(*BOUND, ENDS)
    clock.now = ENDS
    with refused(ErrorCode.UNAUTHENTICATED):
        tokens.check(token, *OTHERS[0])


def test_a_token_lives_through_the_last_part_of_a_second(
    tokens: CallbackTokens, clock: Clock
) -> None:
    ends = START + timedelta(milliseconds=500)
    token = tokens.issue(*BOUND, ends)
    clock.now = ends - timedelta(microseconds=1)
    tokens.check(token, *BOUND)


def later(token: str) -> str:
    version, expiry, binding, signature = token.split(".")
    return f"{version}.{int(expiry) + 1}.{binding}.{signature}"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: None,
        lambda _: "",
        lambda _: ".",
        lambda _: "...",
        lambda _: "1.2.3.4",
        lambda _: "\udcff.é",
        lambda token: token[:-1],
        lambda token: token + "=",
        lambda token: token + "A",
        lambda token: " " + token,
        lambda token: token.swapcase(),
        lambda token: "2" + token[1:],
        lambda token: "1." + token,
        lambda token: token.rpartition(".")[0],
        lambda token: token.rpartition(".")[0] + ".",
        later,
    ],
)
def test_a_token_that_was_changed_or_made_up_is_refused(
    tokens: CallbackTokens, spoil: Callable[[str], str | None]
) -> None:
    token = tokens.issue(*BOUND, ENDS)
    with refused(ErrorCode.UNAUTHENTICATED, hiding=token[:-1]):
        tokens.check(spoil(token), *BOUND)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with refused(ErrorCode.UNAUTHENTICATED):
        CallbackTokens([KEY], Clock()).check(text, *BOUND)


def test_a_token_of_another_key_is_refused(tokens: CallbackTokens, clock: Clock) -> None:
    token = CallbackTokens([NEXT_KEY], clock).issue(*BOUND, ENDS)
    with refused(ErrorCode.UNAUTHENTICATED):
        tokens.check(token, *BOUND)


def test_a_token_of_an_older_key_passes_until_the_key_is_dropped(
    tokens: CallbackTokens, clock: Clock
) -> None:
    token = tokens.issue(*BOUND, ENDS)
    CallbackTokens([NEXT_KEY, KEY], clock).check(token, *BOUND)
    with refused(ErrorCode.UNAUTHENTICATED):
        CallbackTokens([NEXT_KEY], clock).check(token, *BOUND)


def test_the_first_key_signs(tokens: CallbackTokens, clock: Clock) -> None:
    token = CallbackTokens([NEXT_KEY, KEY], clock).issue(*BOUND, ENDS)
    CallbackTokens([NEXT_KEY], clock).check(token, *BOUND)


@pytest.mark.parametrize("keys", [[], [b""], [b"hunter2"], [KEY, b"hunter2"]])
def test_keys_that_are_missing_or_short_are_not_accepted(keys: list[bytes], clock: Clock) -> None:
    with pytest.raises(ValueError, match="at least 32 bytes") as caught:
        CallbackTokens(keys, clock)
    assert "hunter2" not in str(caught.value)


def test_its_keys_are_not_shown(clock: Clock) -> None:
    assert "k" * 8 not in repr(CallbackTokens([KEY], clock))


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "data" / "callback.key"
    key = load_or_create_key(path)
    assert len(key) == 32
    assert load_or_create_key(path) == key
    assert load_or_create_key(tmp_path / "other.key") != key
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_all_who_start_at_the_same_time_get_the_same_key(tmp_path: Path) -> None:
    start, keys = threading.Barrier(8), list[bytes]()

    def load() -> None:
        start.wait(DEADLINE)
        keys.append(load_or_create_key(tmp_path / "callback.key"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert len(keys) == 8
    assert len(set(keys)) == 1


@pytest.mark.parametrize("content", [b"", b"hunter2", b"hunter2" * 9])
def test_a_damaged_key_is_neither_used_nor_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "callback.key"
    path.write_bytes(content)
    with refused(ErrorCode.UNAVAILABLE, hiding="hunter2"):
        load_or_create_key(path)
    assert path.read_bytes() == content


def test_a_key_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "callback.key"
    path.mkdir()
    with refused(ErrorCode.UNAVAILABLE):
        load_or_create_key(path)
