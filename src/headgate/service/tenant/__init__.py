"""One tenant: its subscriptions indexed, its events matched, kept and handed on. Tenants share nothing."""
