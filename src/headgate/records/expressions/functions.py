"""The table of functions and operators, and of those that are refused, with the reason."""

from __future__ import annotations

from headgate.records.expressions import arrays, logic, moments, numbers, texts

OPERATORS = {**numbers.OPERATORS, **logic.OPERATORS, **texts.OPERATORS, **arrays.OPERATORS}
"""What is written with signs and words; not to be called by these names."""
FUNCTIONS = {
    **numbers.FUNCTIONS,
    **logic.FUNCTIONS,
    **texts.FUNCTIONS,
    **moments.FUNCTIONS,
    **arrays.FUNCTIONS,
}
ALIASES = {
    **numbers.ALIASES,
    **logic.ALIASES,
    **texts.ALIASES,
    **moments.ALIASES,
    **arrays.ALIASES,
}
"""Other names; some are of operators."""

_CLOCK = "it asks the clock, and an event means the same at any time; the event's own time is :event_time"
_CHANCE = "it gives another answer each time"
_DIGIT = "its last digit depends on the machine"
_ROWS = "it looks at many rows, and a filter at one event"
REFUSED = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "curdate", "localtimestamp"), _CLOCK),
    **dict.fromkeys(
        ("unix_timestamp", "to_unix_timestamp", "current_timezone"), f"{_CLOCK}; unix_seconds does not"
    ),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform"), _CHANCE),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id", "input_file_name"), _CHANCE),
    **dict.fromkeys(
        ("exp", "ln", "log", "log10", "log2", "pow", "power", "sin", "cos", "tan", "cbrt"), _DIGIT
    ),
    **dict.fromkeys(("count", "sum", "avg", "min", "max", "first", "last", "collect_list", "mean"), _ROWS),
    "present": "it is for sets of filters with nulls='told'; to others, null is missing",
    **dict.fromkeys(("user", "current_user", "session_user", "version"), "it asks the session"),
}
