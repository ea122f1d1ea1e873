"""Documents: bytes to arrays."""

from headgate.core.machine import need

need("xml")
