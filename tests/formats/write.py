"""Write an example of every format whose present version has none: `python -m tests.formats.write`.

Run it when a version has changed, and commit the new files beside the old ones. An example that is there is
never written again: others may have data of just that version.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.formats.cases import CASES, FIXTURES, packed, place_of


def main() -> None:
    """Write what is not there."""
    FIXTURES.mkdir(exist_ok=True)
    for name, case in CASES.items():
        place = place_of(name)
        if place.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            case.write(Path(folder))
            place.write_bytes(packed(Path(folder)))
        sys.stdout.write(f"{place.name}: {place.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
