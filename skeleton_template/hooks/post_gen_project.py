# ruff: noqa: F821  (cookiecutter's own braces)
"""What was baked is remembered for `lucius update`, and where lucius-sdk comes from for make.

`lucius new` calls these functions too. Imported, this file is plain Python; the answers are filled
in below when cookiecutter runs it.
"""

import json
import os
import shlex
import shutil
from pathlib import Path

BASELINE = ".lucius-template.json"
LOCAL = "local.mk"
LEFTOVERS = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")


def tidy(folder):
    """Pip compiles a template that it installs, and linters leave caches: no part of a project."""
    for name in LEFTOVERS:
        for leftover in list(folder.rglob(name)):
            shutil.rmtree(leftover)


def checkout_of(template):
    """The checkout that the template is a part of; None if it came some other way."""
    project = template.parent / "pyproject.toml"
    is_ours = project.is_file() and 'name = "lucius-sdk"' in project.read_text(encoding="utf-8")
    return template.parent if is_ours else None


def local_settings(source):
    """`local.mk` for an SDK that is installed from `source` and not from the package index."""
    word = shlex.quote(str(source)).replace("$", "$$").replace("#", r"\#")
    return f"# For this machine alone: where lucius-sdk is installed from.\nLUCIUS_SDK ?= {word}\n"


def remember(version, answers):
    files = {
        path.as_posix(): path.read_bytes().decode() for path in Path().rglob("*") if path.is_file()
    }
    baseline = {"template": version, "answers": answers, "files": files}
    text = json.dumps(baseline, ensure_ascii=False, indent=1, sort_keys=True)
    Path(BASELINE).write_bytes(f"{text}\n".encode())


def found_template(name, output):
    """cookiecutter tells the path as it was typed: relative to the shell's folder, then."""
    places = [Path(os.environ.get("PWD", output), name), Path(output, name)]
    return next((place.resolve() for place in places if place.is_dir()), None)


if __name__ == "__main__":
    answers = {
        "service_name": {{"%r" | format(cookiecutter.service_name)}},
        "step_type": {{"%r" | format(cookiecutter.step_type)}},
        "package_name": {{"%r" | format(cookiecutter.package_name)}},
        "description": {{"%r" | format(cookiecutter.description)}},
    }
    tidy(Path())
    remember({{cookiecutter._version}}, answers)
    template = found_template(
        {{"%r" | format(cookiecutter._repo_dir)}}, {{"%r" | format(cookiecutter._output_dir)}}
    )
    if template and (checkout := checkout_of(template)):
        Path(LOCAL).write_bytes(local_settings(checkout).encode())
    print(f"{Path.cwd().name} is made: go there and type `make test`, `make contract`, `make run`")
