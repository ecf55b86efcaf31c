import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.ids import message_id, new_job_id, new_lease_id, step_id

NOW = datetime(2026, 1, 27, 10, 0, tzinfo=UTC)
times = st.datetimes(min_value=datetime(2000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
entropy = st.binary(min_size=10, max_size=10)


@given(earlier=times, gap=st.integers(1, 10**9), a=entropy, b=entropy)
def test_job_ids_sort_by_their_millisecond(earlier: datetime, gap: int, a: bytes, b: bytes) -> None:
    earlier = earlier.replace(year=min(earlier.year, 9000))
    later = earlier + timedelta(milliseconds=gap)
    assert new_job_id(earlier, a) < new_job_id(later, b)


@given(now=times, a=entropy)
def test_a_job_id_is_a_version_7_uuid(now: datetime, a: bytes) -> None:
    parsed = uuid.UUID(new_job_id(now, a).removeprefix("job_"))
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


def test_the_same_inputs_give_the_same_id() -> None:
    assert new_job_id(NOW, b"0123456789") == new_job_id(NOW, b"0123456789")


def test_a_lease_id_keeps_every_random_bit() -> None:
    assert new_lease_id(bytes(range(16))) == bytes(range(16)).hex()


def test_too_little_randomness_is_refused() -> None:
    with pytest.raises(ValueError, match="16 random bytes"):
        new_lease_id(b"guess")
    with pytest.raises(ValueError, match="10 random bytes"):
        new_job_id(NOW, b"")


def test_steps_are_numbered_from_one_and_sort() -> None:
    assert [step_id(0), step_id(9), step_id(29)] == ["step_01", "step_10", "step_30"]


def test_a_message_id_names_the_attempt_and_the_kind() -> None:
    assert message_id("job_1", "step_01", 2, "lease", "ACK") == "job_1.step_01.2.lease.ACK"
