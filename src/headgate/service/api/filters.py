"""How filters of requests are read: with the taxonomy of the tenant, and what it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.kind import FilterSettings
from headgate.contents.registry import contents_of, kind_of
from headgate.core.subscription import check_dialect
from headgate.service.tenant.edits import read_taxonomy

if TYPE_CHECKING:
    from headgate.service.tenant.tenant import Tenant


def settings_of(tenant: Tenant, dialect: str) -> FilterSettings:
    """Return the settings of a filter that is asked about; one without an index is told, not refused."""
    check_dialect(dialect)
    known = kind_of(contents_of([dialect])).settings
    text = tenant.store.graph.taxonomy() if "taxonomy" in known else None
    return FilterSettings(
        dialect,
        taxonomy=None if text is None else read_taxonomy(text),
        unindexed="allow" if "unindexed" in known else None,
    )
