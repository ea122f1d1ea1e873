"""XPath 1.0 as a whole: the index narrows, lxml decides."""

from headgate.core.machine import need

need("xml")
