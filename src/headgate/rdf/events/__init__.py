"""Events: documents to numbered graphs."""

from headgate.core.machine import need

need("rdf")
