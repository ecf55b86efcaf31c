"""YAML files that people write: what is wrong with one is said with its place."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from lucius_contract.canonical import pointer_to

Model = TypeVar("Model", bound=BaseModel)


def read_file(path: Path, model: type[Model], unusable: type[Exception], begin: str) -> Model:
    """The file as a model. `unusable` is raised with what to do; `begin` is how a file of this kind
    begins."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise unusable(f"{path}: there is no such file") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise unusable(f"{path} cannot be read: {error}") from error
    if not isinstance(found, Mapping):
        raise unusable(f"{path} must be a mapping that begins with `{begin}`")
    try:
        return model.model_validate(dict(found))
    except ValidationError as error:
        raise unusable("\n".join([f"{path} is not usable:", *_told(error)])) from error


def _told(error: ValidationError) -> list[str]:
    found: list[Any] = error.errors(include_url=False, include_input=False)
    return [f"  {pointer_to(each['loc']) or 'the file'}: {each['msg']}" for each in found]
