"""What a client may announce: content of a certain length, in parts of a certain size."""

from collections.abc import Sequence

from lucius_artifacts.errors import Invalid
from lucius_artifacts.model import Upload
from lucius_artifacts.names import checked_digest
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.states import UploadState
from lucius_artifacts.world import Limits, World

_ID_BYTES = 16
_CHALLENGE_BYTES = 32


class Announcing:
    def __init__(self, objects: Objects, world: World, limits: Limits) -> None:
        self._objects = objects
        self._world = world
        self._limits = limits

    def new_upload(
        self, tenant_id: str, actor: str, digest: str, length: int, part_size: int | None
    ) -> Upload:
        now, upload_id = self._world.clock(), f"up_{self._world.entropy(_ID_BYTES).hex()}"
        return Upload(
            upload_id,
            tenant_id,
            checked_digest(digest),
            self._checked_length(length),
            self._checked_part_size(length, part_size),
            object_key=f"ob_{self._world.entropy(_ID_BYTES).hex()}",
            challenge=self._world.entropy(_CHALLENGE_BYTES).hex(),
            state=UploadState.INITIATED,
            created_at=now,
            created_by=actor,
            expires_at=now + self._limits.session_lifetime,
        )

    def check_numbers(self, upload: Upload, numbers: Sequence[int]) -> None:
        """Of parts that are asked for."""
        if len(numbers) > self._limits.max_parts_at_once:
            raise Invalid("parts", f"are more than {self._limits.max_parts_at_once} at once")
        if not all(1 <= number <= upload.part_count for number in numbers):
            raise Invalid("parts", f"must have numbers from 1 to {upload.part_count}")

    def _checked_length(self, length: int) -> int:
        if not 0 <= length <= self._limits.max_length:
            raise Invalid("length", f"must be from 0 to {self._limits.max_length} bytes")
        return length

    def _checked_part_size(self, length: int, part_size: int | None) -> int:
        """Without a wish: ours, or larger if the content would have too many parts."""
        smallest = max(1, -(-length // self._objects.most_parts))
        if part_size is None:
            return max(smallest, min(self._limits.part_size, self._objects.largest_part))
        if not smallest <= part_size <= self._objects.largest_part:
            raise Invalid(
                "part_size", f"must be from {smallest} to {self._objects.largest_part} bytes"
            )
        return part_size
