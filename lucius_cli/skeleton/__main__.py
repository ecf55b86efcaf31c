"""Write the shared files of a project again: python -m lucius_cli.skeleton FOLDER [ANSWER=VALUE]...

For projects that have not diverged and must not, as the examples of this repository. Answers are
those of the last time unless given: service_name, step_type, package_name, description.
"""

import sys
from pathlib import Path

from lucius_cli.failures import CommandFailed, ExitCode
from lucius_cli.output import print_line, say
from lucius_cli.skeleton import rewrite


def main(arguments: list[str]) -> int:
    if not arguments or any("=" not in each for each in arguments[1:]):
        say(__doc__.partition("\n")[0])
        return ExitCode.USAGE
    folder, *given = arguments
    try:
        changed = rewrite(Path(folder), dict(each.split("=", 1) for each in given))
    except CommandFailed as error:
        say(str(error))
        return error.exit_code
    for path in changed:
        print_line(f"{folder}/{path}")
    return ExitCode.FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
