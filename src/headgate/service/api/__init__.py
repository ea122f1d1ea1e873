"""The HTTP API: operations, each with its types, its scope and an example; OpenAPI is made from them."""
