"""Published methods for partial multi-label learning, each in a module of its own, beside PML-MA."""

__all__: list[str] = []
