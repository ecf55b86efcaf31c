"""What a job may ask for."""

from lucius_vectors import DEFAULT_MODEL
from pydantic import BaseModel, ConfigDict, Field, model_validator

_SHARED = 5
"""Neighbours share one in so many tokens, unless the job says otherwise."""


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    chunk_size: int = Field(200, ge=1)
    """Length of a chunk, in tokens. How many a model takes is up to the model."""
    overlap: int | None = Field(None, ge=0)
    """How many tokens two neighbouring chunks share, at most."""
    model: str = Field(DEFAULT_MODEL, min_length=1, max_length=256)

    @model_validator(mode="after")
    def _leaves_room(self) -> "Payload":
        if self.shared >= self.chunk_size:
            raise ValueError("overlap must be less than chunk_size")
        return self

    @property
    def shared(self) -> int:
        """`overlap`, or what stands for it."""
        return self.chunk_size // _SHARED if self.overlap is None else self.overlap
