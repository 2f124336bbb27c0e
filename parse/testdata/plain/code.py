import functools

[search(query="x") for _ in range(3)]

results = [get_weather(city="Paris"), now()]

@functools.lru_cache
def search(query, limit=None):
    """Find it.

    >>> search(query="x")
    [1, 2]
    """
    return {"name": "search", "arguments": {"query": query}}

payload = [
    {"name": "search", "arguments": {"query": "x"}},
]
