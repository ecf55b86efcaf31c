"""Measure whether the tests notice single-line breaks of product code.

For each area (`areas.py`) the program records which tests run which line, breaks one line at a time
(`breaks.py`) in a copy of the tree (`copies.py`), and runs the tests that cover it or its function
(`trials.py`). A break after which they all pass has survived: a mistake of this kind would reach
users. The working tree is never changed. Needs Linux.

    .venv/bin/python -m tools.mutation --area outbox --breaks 20 --out /tmp/outbox.jsonl

Limits. What runs in a fixture that several tests share counts for the first of them. A process that
is killed by SIGKILL leaves no record of its lines. A flaky test looks like one that notices. A
survivor may be equivalent to the original: read it before you write a test.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tools.mutation.areas import AREAS, Area
from tools.mutation.breaks import Break, breaks_of, chosen_breaks
from tools.mutation.copies import STOPPING, Copy
from tools.mutation.trials import CACHE, Trials


def main() -> int:
    options = _options()
    areas = [area for area in AREAS if not options.area or area.name in options.area]
    chosen = {area: breaks for area in areas if (breaks := _wanted(area, options))}
    if not chosen:
        raise SystemExit(f"no area has a break at {options.only}")
    if options.list:
        print(*(one for breaks in chosen.values() for one in breaks), sep="\n")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="mt", ignore_cleanup_errors=True) as folder:
            copies = [Copy(Path(folder, str(each))) for each in range(options.jobs)]
            for area, breaks in chosen.items():
                _run(area, breaks, options, copies)
    except KeyboardInterrupt:
        print("interrupted; run it again to go on", file=sys.stderr)
        return 130
    known = _results(options.out)
    print(_summary([known[str(one)] for breaks in chosen.values() for one in breaks]))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("tools.mutation", description=str(__doc__).partition("\n")[0])
    add = parser.add_argument
    names = [area.name for area in AREAS]
    add("--area", nargs="+", action="extend", choices=names, help="all by default")
    add("--breaks", type=int, default=20, help="how many per area (%(default)s)")
    add("--seed", type=int, default=1, help="chooses which (%(default)s)")
    add("--only", metavar="FILE:LINE", help="every break of this line, with every covering test")
    add("--list", action="store_true", help="print the breaks and run nothing")
    add("--out", type=Path, default=CACHE / "results.jsonl", help="what it has is not run again")
    add("--jobs", type=int, default=1, help="copies at once (%(default)s)")
    return parser.parse_args()


def _wanted(area: Area, options: argparse.Namespace) -> list[Break]:
    if not options.only:
        return chosen_breaks(area, options.breaks, options.seed)
    files = [file for file in area.source_files() if options.only.startswith(f"{file}:")]
    return [one for file in files for one in breaks_of(file) if one.place == options.only]


def _run(
    area: Area, breaks: Sequence[Break], options: argparse.Namespace, copies: Sequence[Copy]
) -> None:
    known = {} if options.only else _results(options.out)
    missing = [one for one in breaks if str(one) not in known]
    if not missing:
        return
    trials = Trials(area, copies[0])
    trials.check(copies[0])
    options.out.parent.mkdir(parents=True, exist_ok=True)

    def run(copy: Copy, share: Sequence[Break]) -> None:
        for one in share:
            result = trials.result(copy, one, every_test=bool(options.only))
            with options.out.open("a") as out:
                out.write(json.dumps(result) + "\n")
            by = f"by {result['by']} " if result["by"] else ""
            print(f"{one.place} {result['outcome']} {by}({result['seconds']} s)", flush=True)

    shares = [missing[each :: len(copies)] for each in range(len(copies))]
    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            list(pool.map(run, copies, shares))
        except BaseException:
            STOPPING.set()
            raise


def _results(out: Path) -> dict[str, Any]:
    """Return the last result of each break."""
    lines = map(json.loads, out.read_text().splitlines()) if out.exists() else []
    return {line["break"]: line for line in lines}


def _summary(results: Sequence[Any]) -> str:
    rows = [f"\n{'area':14} breaks  noticed  survived  score"]
    for area in dict.fromkeys(result["area"] for result in results):
        outcomes = [result["outcome"] for result in results if result["area"] == area]
        total, noticed = len(outcomes), outcomes.count("noticed")
        score = f"{noticed / total:.0%}"
        rows.append(f"{area:14} {total:6} {noticed:8} {total - noticed:9} {score:>6}")
    for result in results:
        if result["outcome"] == "survived":
            ran = f"{result['tests_run']} of {result['tests_covering']} covering tests ran"
            rows.append(f"\n{result['break']}\n  {ran}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
