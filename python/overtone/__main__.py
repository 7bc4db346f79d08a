"""``overtone`` and ``python -m overtone``: the whole program, from a shell."""

from __future__ import annotations

import signal
import sys

from overtone import _host, _overtone, _track


def main() -> int:
    """Runs the command line; returns the exit code."""
    if sys.argv[1:2] == ["track"]:
        # Trackers are Python packages.
        return _track.main(sys.argv[2:])
    # The program handles Ctrl-C itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        _host.announce(sys.argv[1:])
    except _overtone.OvertoneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    # Standard output is for the program; output of environments goes to standard error.
    sys.stdout = sys.stderr
    return _overtone.main(["overtone", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
