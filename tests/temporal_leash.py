"""Runs a program that ends with whoever started it, who may be killed and stop nothing."""

import subprocess
import sys
import threading


def _end_with_input(program: "subprocess.Popen[bytes]") -> None:
    sys.stdin.buffer.read()
    program.terminate()


if __name__ == "__main__":
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    sys.exit(program.wait())
