"""The one kind of error that ends a comparison with a sentence instead of a traceback."""


class Failure(Exception):
    """Something about the machine or a server makes the figures impossible or worthless."""
