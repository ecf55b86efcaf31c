"""Run every benchmark and end with a table."""

import json
import subprocess
import sys
from pathlib import Path


def run(name: str) -> dict[str, object]:
    print(f"--- {name}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.bench_{name}"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    lines = done.stdout.splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {"name": name, "ratio": "-", "target": "-", "ok": False}
    verdict: dict[str, object] = json.loads(lines[-1])
    return verdict


def main() -> int:
    names = sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    verdicts = [run(name) for name in names]
    print(f"\n{'benchmark':<16}{'ratio':>10}{'target':>10}  ok")
    for verdict in verdicts:
        row = f"{verdict['name']:<16}{verdict['ratio']:>10}{verdict['target']:>10}"
        print(row, "yes" if verdict["ok"] else "NO", sep="  ")
    return 0 if all(verdict["ok"] for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
