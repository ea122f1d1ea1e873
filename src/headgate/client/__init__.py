"""Clients of the service: `Client` for programs that wait, `AsyncClient` for those on asyncio."""
