"""How a benchmark measures and what it prints."""

import json
import sys
import time
from collections.abc import Callable
from statistics import median

ROUNDS = 7


def per_second(work: Callable[[], int], *others: Callable[[], int]) -> tuple[float, ...]:
    """Median rate of each piece of work, in turns, so that a noisy moment hits all of them.

    A piece of work returns how many units it did.
    """
    pieces = (work, *others)
    rates: list[list[float]] = [[] for _ in pieces]
    for _ in range(ROUNDS):
        for piece, found in zip(pieces, rates, strict=True):
            start = time.perf_counter()
            done = piece()
            found.append(done / (time.perf_counter() - start))
    return tuple(median(found) for found in rates)


def report(
    name: str, ratio: float, target: float, *, at_most: bool = False, **figures: float
) -> None:
    """Print the verdict; a missed target is the exit code 1."""
    ok = ratio <= target if at_most else ratio >= target
    rounded = {key: round(value, 2) for key, value in figures.items()}
    line = {"name": name, "ratio": round(ratio, 3), "target": target, "ok": ok, **rounded}
    print(json.dumps(line))
    sys.exit(0 if ok else 1)
