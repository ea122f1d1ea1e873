"""The log of a service as a source of DataFrames, which programs register.

The key of a service is part of the source when it is registered, and no option: options stand in plans.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from headgate.client.asking import ADDRESS, KEY
from headgate.client.log import LogSettings
from headgate.errors import TableError
from headgate.spark.stream.logs import LogSource, LogTable
from headgate.stream.sources.service_log import TABLE, ServiceLog, as_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from headgate.spark.stream.logs import Opening

NAME = "headgate"


def register_source(session: SparkSession, *, key: str | None = None, name: str = NAME) -> None:
    """Make the events that services keep known to a session, as a format.

    Without a `key` it is that of HEADGATE_KEY as it is now. Services with other keys get formats of other
    names.

        hg.register_source(spark)
        events = spark.read.format("headgate").option("address", "http://127.0.0.1:8080").load()
    """
    attributes = {"key": key or os.environ.get(KEY), "address": os.environ.get(ADDRESS), "called": name}
    try:
        session.dataSource.register(type("Events", (ServiceSource,), attributes))
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise TableError(
            f"Spark, or another session of it, has a source {name!r} already: give another name"
        ) from None


class ServiceSource(LogSource):
    """What Spark knows the events of a service by; a row is an event with what is known of it."""

    key: str | None = None
    address: str | None = None
    called = NAME
    columns = TABLE

    def reader(self, schema: StructType) -> LogTable:
        """Return what reads all that is kept now."""
        return LogTable(self.opens(schema))

    def opens(self, schema: StructType) -> Opening:
        """Return what opens the log of a service; refuses a schema, and a key among the options."""
        # There is no Spark here that could read the text.
        if ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema) != TABLE:
            raise TableError(
                f"the source {self.called!r} has columns of its own: give no schema, and read attributes by "
                "from_json(data, schema)"
            )
        options = {name.lower(): str(value) for name, value in self.options.items()}
        if "key" in options:
            raise TableError(
                "the key of a service is no option, because options stand in plans: give it to "
                "register_source, or put it into HEADGATE_KEY before"
            )
        address = options.pop("address", self.address)
        settings = LogSettings.of(address or "http://127.0.0.1:8080", options, key=self.key)
        return partial(ServiceLog, settings, as_table)
