"""Where a new project gets lucius-sdk from, when that is not the package index."""

import json
from importlib.metadata import Distribution, distribution
from typing import Any

from lucius_cli.skeleton.template import Template


def local_files(template: Template) -> dict[str, str]:
    """Settings of this machine that a project made here needs; none if all is on the index."""
    hook = template.hook("post_gen_project")
    source = hook["checkout_of"](template.folder) or installed_from(distribution("lucius-sdk"))
    return {hook["LOCAL"]: hook["local_settings"](source)} if source else {}


def installed_from(package: Distribution) -> str | None:
    """The address that pip was given; None if it was given a name."""
    recorded: dict[str, Any] = json.loads(package.read_text("direct_url.json") or "{}")
    address: str | None = recorded.get("url")
    if address is not None and "vcs_info" in recorded:
        version = recorded["vcs_info"]
        return f"{version['vcs']}+{address}@{version['commit_id']}"
    return address
