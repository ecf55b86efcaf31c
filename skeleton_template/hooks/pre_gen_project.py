# ruff: noqa: F821  (cookiecutter's own braces)
"""Answers that cannot become a service are refused before anything is written.

`lucius new` and `lucius update` call `problems` too. Imported, this file is plain Python; the
answers are filled in below when cookiecutter runs it.
"""

import keyword
import re
import sys

RULES = {
    "service_name": (
        r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?",
        "1 to 50 lower-case letters, digits or inner hyphens, as word-count",
    ),
    "step_type": (
        r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
        "1 to 64 letters, digits, underscores or hyphens, as WORD_COUNT",
    ),
    "package_name": (
        r"[a-z_][a-z0-9_]{0,63}",
        "the name of a Python package in lower case, as word_count_service",
    ),
    "description": (
        r"[^\x00-\x1f\x7f\"\\{}]{1,200}",
        "one line of 1 to 200 characters without double quotes, backslashes and braces",
    ),
}
TAKEN = {"conformance", "deploy", "samples", "tests", "wheels"}


def problems(answers):
    """What is wrong with the answers, one line for each that is."""
    found = [
        f"{name}: must be {rule}, got {answers[name]!r}"
        for name, (pattern, rule) in RULES.items()
        if name in answers and re.fullmatch(pattern, answers[name]) is None
    ]
    package = answers.get("package_name", "")
    if package in TAKEN or package in sys.stdlib_module_names or keyword.iskeyword(package):
        found.append(f"package_name: {package} means something else to Python or to this project")
    return found


if __name__ == "__main__":
    answers = {
        "service_name": {{"%r" | format(cookiecutter.service_name)}},
        "step_type": {{"%r" | format(cookiecutter.step_type)}},
        "package_name": {{"%r" | format(cookiecutter.package_name)}},
        "description": {{"%r" | format(cookiecutter.description)}},
    }
    if wrong := problems(answers):
        sys.exit("\n".join(wrong))
