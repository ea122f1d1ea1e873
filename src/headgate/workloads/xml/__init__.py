"""Workloads of XML documents."""
