"""Pin the wheel of lucius-sdk that the image gets: python deploy/pin_sdk.py SOURCE [SHA256]

Writes wheels/lucius-sdk.txt and wheels/constraint.txt, by which the Dockerfile takes this one wheel
and none of an index.
SOURCE is where the wheel in wheels/ came from. A bare name is what anybody may have given to a
package of an index, so that one needs the digest that the wheel must have.
"""

import hashlib
import re
import sys
from pathlib import Path

WHEELS = Path("wheels")
PIN, CONSTRAINT = WHEELS / "lucius-sdk.txt", WHEELS / "constraint.txt"
BUILD = "/build"
"""WORKDIR of the stage that installs it."""
_PLACE = re.compile(r"[/\\@]|\.whl$|^\.")
_WHEEL = re.compile(
    r"lucius_sdk-(?P<version>[A-Za-z0-9.+_!]+)-[a-z0-9.]+-[a-z0-9]+-[a-z0-9_]+\.whl"
)


def pin(source: str, expected: str) -> None:
    """ValueError says what to do; nothing is pinned then."""
    for old in (PIN, CONSTRAINT):
        old.unlink(missing_ok=True)
    found = sorted(WHEELS.glob("*.whl"))
    named = _WHEEL.fullmatch(found[0].name) if len(found) == 1 else None
    if named is None:
        raise ValueError(f"{WHEELS} must hold one wheel, of lucius-sdk: remove the others")
    wheel = found[0]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if expected and digest != expected:
        raise ValueError(f"{wheel.name} has the SHA-256 {digest}, not {expected}: do not use it")
    if not expected and _PLACE.search(source) is None:
        raise ValueError(
            f"LUCIUS_SDK={source} is a name, and an index may offer anything under it: set"
            " LUCIUS_SDK to a checkout, a wheel or an address, or LUCIUS_SDK_SHA256 to the digest"
            f" of the wheel that you trust ({wheel.name} has {digest})"
        )
    place = f"file://{BUILD}/{WHEELS}/{wheel.name}"
    PIN.write_text(f"lucius-sdk @ {place} --hash=sha256:{digest}\n", encoding="utf-8")
    CONSTRAINT.write_text(f"lucius-sdk=={named['version']}\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        pin(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
    except ValueError as error:
        sys.exit(str(error))
