"""What a version of the template made of some answers: the base of every later merge."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lucius_cli.failures import Unsuitable

BASELINE = ".lucius-template.json"


class Baked(BaseModel):
    """Stored in `.lucius-template.json`: an update needs no history and no old release."""

    model_config = ConfigDict(frozen=True)

    template: Annotated[int, Field(ge=1)]
    """The version of the template."""
    answers: dict[str, str]
    files: dict[str, str]
    """The text of each file by its path, as it was baked."""
    pending: dict[str, str] = {}
    """Digests of what an update is writing: there only while it does, or if it was interrupted."""

    @property
    def record(self) -> dict[str, str]:
        """The file that remembers it, by its path."""
        content = self.model_dump(exclude_defaults=True)
        text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True)
        return {BASELINE: f"{text}\n"}


def read_baseline(folder: Path) -> Baked:
    """`Unsuitable` if the folder is no project of the skeleton."""
    file = folder / BASELINE
    if file.is_symlink():
        raise Unsuitable(f"{file} is a symbolic link: restore the file from your repository")
    try:
        return Baked.model_validate_json(file.read_bytes())
    except FileNotFoundError as error:
        raise Unsuitable(
            f"{folder} has no {BASELINE}: it was not made from the skeleton"
            " (lucius new NAME makes one that is)"
        ) from error
    except OSError as error:
        raise Unsuitable(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise Unsuitable(
            f"{file} cannot be used: {where} {first['msg']}; restore it from your repository"
        ) from error
