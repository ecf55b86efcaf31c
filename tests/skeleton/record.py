"""Keep what the template bakes now as that of its version: python -m tests.skeleton.record

A version that was released is never recorded again: raise `_version` in `cookiecutter.json`.
"""

from lucius_cli.skeleton import bake
from lucius_cli.skeleton.baked import BASELINE
from tests.skeleton.projects import VERSIONS

if __name__ == "__main__":
    baked = bake({"service_name": "word-count"})
    file = VERSIONS / f"{baked.template}.json"
    file.write_text(baked.record[BASELINE], encoding="utf-8")
    print(file)
