"""The parameters of the step, as its protocol allows them."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _number(value: Any) -> Any:
    """JSON's numbers alone: pydantic would take "200" and true as well, the protocol does not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("Input should be a number")  # noqa: TRY004 - pydantic reports ValueErrors
    return value


Whole = Annotated[int, BeforeValidator(_number)]
Language = Annotated[str, Field(min_length=1, max_length=32)]
PageNumber = Annotated[Whole, Field(ge=1)]


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    languages: Annotated[list[Language], Field(min_length=1, max_length=20)] = ["eng"]
    """By Tesseract's names, the most likely one first."""
    dpi: Annotated[Whole, Field(ge=72, le=600)] = 200
    """At which pages of a PDF are rendered."""
    pages: Annotated[list[PageNumber], Field(min_length=1)] = []
    """Numbers from 1; all pages when it is left out."""
