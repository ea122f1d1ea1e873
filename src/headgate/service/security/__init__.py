"""Who may do what: keys and their scopes, quotas, addresses that webhooks may go to."""
