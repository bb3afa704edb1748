# SPDX-License-Identifier: GPL-2.0-only
"""Usage: fuzz-inputs.py INPUTS LIST

Make a file of each line of INPUTS, in a folder beside LIST, and write their paths to LIST, for
`fuzz-NAME -seed_inputs=@LIST`. A line is an input in base64; text behind # is a comment. Inputs of
these targets are bytes, and no line of a licence fits into them:

    AWlkbGU=  # class 'idle'
"""

import base64
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Make the files anew."""
    inputs, listed = map(Path, sys.argv[1:])
    folder = listed.with_suffix("").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    paths = []
    for number, line in enumerate(inputs.read_text().splitlines(), 1):
        if text := line.partition("#")[0].strip():
            paths.append(folder / f"line-{number}")
            paths[-1].write_bytes(base64.b64decode(text, validate=True))
    listed.write_text(",".join(map(str, paths)))


if __name__ == "__main__":
    main()
