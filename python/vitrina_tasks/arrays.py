"""One-dimensional PostgreSQL arrays as text. What PostgreSQL printed is reproduced exactly."""

import re

_ELEMENT = re.compile(r'(?:"((?:[^"\\]|\\.)*)"|([^",{}]+))(,|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
# The rule of PostgreSQL's own array_out.
_NEEDS_QUOTES = re.compile(r'\A\Z|\A(?:null)\Z|[{},"\\ \t\n\v\f\r]', re.IGNORECASE | re.ASCII)
_TO_ESCAPE = re.compile(r'["\\]')


def parse_array(text):
    """The elements as texts; None for several dimensions or explicit bounds (``[0:1]={a,b}``)."""
    if not text.startswith("{"):
        return None
    if text == "{}":
        return []
    inner = text[1:-1]
    if '"' not in inner and "\\" not in inner and "{" not in inner:
        return [None if element == "NULL" else element for element in inner.split(",")]
    return _parse_quoted(inner)


def _parse_quoted(inner):
    elements = []
    position = 0
    while True:
        match = _ELEMENT.match(inner, position)
        if match is None:
            return None
        quoted, plain, separator = match.groups()
        if quoted is not None:
            elements.append(_ESCAPED.sub(r"\1", quoted))
        else:
            elements.append(None if plain == "NULL" else plain)
        if separator == "":
            return elements
        position = match.end()


def format_array(elements):
    return "{" + ",".join(map(_format_element, elements)) + "}"


def _format_element(element):
    if element is None:
        return "NULL"
    if _NEEDS_QUOTES.search(element):
        return '"' + _TO_ESCAPE.sub(r"\\\g<0>", element) + '"'
    return element
