"""A configuration folder that tests write."""

from pathlib import Path
from textwrap import dedent

PROTOCOL = """\
protocol_id: translate
version: "1"
request_type: TRANSLATE
steps:
  - step_type: TRANSLATE
    service: translate
    payload_schema: {type: object}
"""


def write(folder: Path, **files: str) -> Path:
    """`a=...` becomes protocols/a.yaml, `tenants` and `defaults` the files of these names."""
    for name, content in files.items():
        place = folder if name in ("tenants", "defaults") else folder / "protocols"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.yaml").write_text(dedent(content), encoding="utf-8")
    return folder


def named(name: str, *, request_type: str | None = None, more: str = "") -> str:
    """A good protocol file with a name of its own."""
    text = PROTOCOL.replace("protocol_id: translate", f"protocol_id: {name}")
    text = text.replace("request_type: TRANSLATE", f"request_type: {request_type or name.upper()}")
    return text + more
