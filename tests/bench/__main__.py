# SPDX-License-Identifier: LGPL-2.1-or-later
"""`python3 -m bench KIND`: see program.py."""

import sys
from importlib import import_module

from bench import program

KINDS = ("demo", "promises", "overhead", "scale", "harm", "attribution", "applications",
         "attacks")  # fmt: skip


def main(words: list[str]) -> int:
    """Run the bench of the kind that is named first."""
    if not words or words[0] not in KINDS:
        print(f"usage: bench KIND ...; KIND is one of {', '.join(KINDS)}", file=sys.stderr)
        return 2
    return program.main(words[0], import_module(f"bench.{words[0]}.kind").KIND, words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
