"""Times in SQLite are whole microseconds since 1970."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
