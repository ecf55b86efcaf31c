"""Every statement of the catalogues on SQL, with values, and rows enough to plan with."""

from typing import Any

from lucius_artifacts.catalogue.sql import statements as sql
from lucius_artifacts.catalogue.sql import tables
from lucius_artifacts.model import Claim, Doomed, Fence, Hold, Producer
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.states import BlobState, UploadState, VersionState
from tests.artifacts import rows
from tests.artifacts.catalogue.asking import blob, digests, put, version_of
from tests.artifacts.rows import HOUR, NOW

WHOLE = {"ALL_OPEN_UPLOADS", "BLOB_STATS", "COUNT_DOOMED"}
"""What gauges count."""

VALUES: dict[str, Any] = {
    **{name: name for name in ("tenant_id", "upload_id", "job_id", "run_id", "object_key")},
    "digest": "5" * 64,
    "after": "4" * 64,
    "after_tenant": "tenant-4",
    "last": "6" * 64,
    "name": "answers",
    "subject": "answers/v1",
    "state": "live",
    "number": 3,
    "before": 3,
    "lowest": 1,
    "highest": 3,
    "limit": 10,
    "now": NOW,
    "needed_before": NOW,
}


def statements() -> dict[str, str]:
    reads = {name: value for name, value in vars(sql).items() if _is_statement(name, value)}
    return {**reads, "update": sql.update(tables.VERSIONS)}


def values(**kinds: Any) -> dict[str, Any]:
    columns = dict.fromkeys(tables.VERSIONS.columns)
    return {**columns, **VALUES, **kinds}


def _is_statement(name: str, value: object) -> bool:
    return isinstance(value, str) and name.isupper() and not name.startswith("_")


async def fill(catalogue: Catalogue) -> None:
    """Some hundred rows of each kind, one tenth of which is what statements look for."""
    keys = digests(400)
    for start in range(0, 400, 100):
        await put(catalogue, *(row for n in range(start, start + 100) for row in _rows(n, keys)))


def _rows(number: int, keys: list[str]) -> list[Any]:
    key = keys[number]
    rare = number % 10 == 0
    return [
        blob(key, state=BlobState.LIVE if rare else BlobState.TOMBSTONED),
        rows.upload(
            UploadState.INITIATED if rare else UploadState.COMMITTED,
            upload_id=f"up_{number}",
            tenant_id=f"tenant-{number % 20}",
            digest=key,
            expires_at=NOW + HOUR * number,
        ),
        Claim(f"tenant-{number}", key, NOW),
        version_of(
            key,
            state=VersionState.PUBLISHED,
            name=f"answers-{number % 20}",
            number=number,
            producer=Producer(f"job_{number}", Fence("step_01", 1, 1)) if rare else None,
        ),
        Hold(f"job_{number}", "acme", key, NOW + HOUR * number),
        Doomed(f"ob_{number}", NOW + HOUR * number, "swept"),
    ]
