"""Dates as feeds write them."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime
from functools import lru_cache

_W3C = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d)(?:[Tt ].*)?)?", re.ASCII | re.DOTALL)
_LONGEST = 64


def read_date(text: str) -> dt.datetime | None:
    """Read a W3C date, which may be short of a part, or the date of a mail; without a zone it is in UTC.

    >>> read_date("2005-05").isoformat(), read_date("Tue, 10 May 2005 09:30:00 GMT").isoformat()
    ('2005-05-01T00:00:00+00:00', '2005-05-10T09:30:00+00:00')
    >>> read_date("yesterday")
    """
    text = text.strip()
    return None if len(text) > _LONGEST else _read(text)


# That of an item is read for its event, and again for what it says.
@lru_cache(maxsize=1024)
def _read(text: str) -> dt.datetime | None:
    try:
        if found := _W3C.fullmatch(text):
            full = text if found[3] else f"{found[1]}-{found[2] or '01'}-01"
            time = dt.datetime.fromisoformat(full)
        else:
            time = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError, TypeError):
        return None
    return time if time.tzinfo else time.replace(tzinfo=dt.UTC)
