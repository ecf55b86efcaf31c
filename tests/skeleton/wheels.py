"""Wheels of what `make setup` has installed, so that a generated service finds its packages without
a package index."""

import os
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OWN = canonicalize_name("lucius-sdk")
"""Built from its checkout, so that no wheel of it is needed."""
_OF_THE_INSTALLATION = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"}
_UNREACHABLE = "http://127.0.0.1:9"


def offline(folder: Path) -> dict[str, str]:
    """Return variables with which pip finds what is in `folder`, and neither pip nor uv nor
    anything else that knows proxies reaches an index."""
    proxies = {f"{scheme}_proxy": _UNREACHABLE for scheme in ("http", "https", "all")}
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_NO_CACHE_DIR": "1",
        "UV_OFFLINE": "1",
        "no_proxy": "",
        "NO_PROXY": "",
        **proxies,
        **{name.upper(): value for name, value in proxies.items()},
    }


def requirements_of(service: Path) -> list[str]:
    """Return what a generated service needs for its work and for its tests."""
    project = tomllib.loads((service / "pyproject.toml").read_text())["project"]
    lines = (service / "requirements.txt").read_text().splitlines()
    needed = [line for line in lines if line and not line.startswith("#")]
    return needed + list(project["optional-dependencies"]["dev"])


def pack(requirements: Iterable[str], folder: Path) -> None:
    """Write a wheel of each distribution that these need into the folder."""
    for name in sorted(_closure(requirements) - {OWN}):
        _pack(distribution(name), folder)


def _closure(requirements: Iterable[str]) -> set[str]:
    """The names of all distributions that must be installed for these, with their extras."""
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras} - {known for other, known in seen if other == name}:
            seen.add((name, extra))
            needed = map(Requirement, distribution(name).requires or ())
            waiting += [each for each in needed if _applies(each, extra)]
    return {name for name, _ in seen}


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _pack(found: Distribution, folder: Path) -> None:
    """Not compressed, and for this interpreter on this machine alone, whatever its name says."""
    site = Path(str(found.locate_file("")))
    paths = [Path(str(found.locate_file(file))).resolve() for file in found.files or ()]
    info = next(path.parent for path in paths if path.name == "METADATA")
    made = {script.name for script in found.entry_points.select(group="console_scripts")}
    with ZipFile(folder / f"{info.stem}-py3-none-any.whl", "w") as wheel:
        for path in paths:
            if path.is_relative_to(site.resolve()):
                name = path.relative_to(site.resolve()).as_posix()
            elif path.name in made:
                continue  # pip makes it again
            else:
                place = path.relative_to(Path(sys.prefix).resolve()).as_posix()
                name = f"{info.stem}.data/data/{place}"
            if path.suffix != ".pyc" and not (
                path.parent == info and path.name in _OF_THE_INSTALLATION
            ):
                wheel.write(path, name)
        rows = [f"{name},,\n" for name in [*wheel.namelist(), f"{info.name}/RECORD"]]
        wheel.writestr(f"{info.name}/RECORD", "".join(rows))
