"""Times in SQLite are whole microseconds since 1970."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def optional_microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    # A double holds today's microseconds with two bits to spare, and this is the fastest way.
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
