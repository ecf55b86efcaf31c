"""The parameters of a step. What breaks this model is refused, and `execute` is not called."""

from pydantic import BaseModel, ConfigDict, Field


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid")

    shortest: int = Field(1, ge=1, le=50)
    """Words of fewer letters are not counted."""
