"""Values as the author of a task sees them. Nothing is rounded: what has no exact Python value stays text.

===============================================  ==========================================
PostgreSQL                                       Python
===============================================  ==========================================
boolean                                          bool
smallint, integer, bigint                        int
real, double precision                           float
numeric                                          decimal.Decimal
arrays of built-in types, one-dimensional        list of the element's values
dates and times, json, jsonb, everything else    str, exactly as PostgreSQL prints it
===============================================  ==========================================

``json`` stays text, as in TypeScript; a dict or list that a task returns is serialised.
"""

import json
import operator
import re
from decimal import Decimal

from .arrays import format_array, parse_array

_MOST_DIGITS = 200_000  # PostgreSQL's numeric ends below


class WrongValue(Exception):
    """The value does not fit its column; the caller knows which row and column that was."""


class Codec:
    """How one type's values are read from and written as PostgreSQL's text. Neither is called with None."""

    mutable = False
    decode = None  # None: the text itself

    def encode(self, value):
        raise NotImplementedError


class Text(Codec):
    def encode(self, value):
        if not isinstance(value, str):
            raise _wrong("str", value)
        return _storable(str(value))


class Boolean(Codec):
    decode = {"t": True, "f": False}.__getitem__

    def encode(self, value):
        if not isinstance(value, bool):
            raise _wrong("bool", value)
        return "t" if value else "f"


class Integer(Codec):
    def __init__(self, bits):
        self.least, self.most = -(1 << bits - 1), (1 << bits - 1) - 1

    decode = int

    def encode(self, value):
        try:
            # The integers of numpy and pandas are not int, but can be converted exactly.
            number = operator.index(value)
        except TypeError:
            raise _wrong("int", value) from None
        if isinstance(value, bool):
            raise _wrong("int", value)
        if not self.least <= number <= self.most:
            raise WrongValue(f"the number is not between {self.least} and {self.most}")
        return str(number)


class Float(Codec):
    decode = float

    def encode(self, value):
        if isinstance(value, bool) or not isinstance(value, (float, int)):
            raise _wrong("float", value)
        return _float_text(float(value))


class Numeric(Codec):
    decode = Decimal

    def encode(self, value):
        if isinstance(value, float):
            return _float_text(value)
        if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
            raise _wrong("Decimal, int or float", value)
        number = Decimal(value)
        if number.is_nan():
            return "NaN"
        # Plain digits, as PostgreSQL prints them, unless that would be a very long text.
        return f"{number:f}" if number.is_finite() and abs(number.adjusted()) < _MOST_DIGITS else str(number)


class Json(Codec):
    def encode(self, value):
        if isinstance(value, str):
            return _storable(str(value))
        if not isinstance(value, (dict, list)):
            raise _wrong("JSON as str, a dict or a list", value)
        try:
            return _storable(json.dumps(value, ensure_ascii=False, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise WrongValue(f"it cannot become JSON ({error})") from None


class Array(Codec):
    mutable = True

    def __init__(self, element):
        self.element = element

    def decode(self, text):
        texts = parse_array(text)
        if texts is None:
            return text
        read = self.element.decode
        return texts if read is None else [None if item is None else read(item) for item in texts]

    def encode(self, value):
        # Multi-dimensional arrays arrive as text and may leave as text.
        if isinstance(value, str) and value[:1] in ("{", "["):
            return _storable(str(value))
        if not isinstance(value, (list, tuple)):
            raise _wrong("list", value)
        return format_array([None if item is None else self.element.encode(item) for item in value])


_TEXT, _JSON, _FLOAT, _NUMERIC = Text(), Json(), Float(), Numeric()
_CODECS = {
    **dict.fromkeys(("bool", "boolean"), Boolean()),
    **dict.fromkeys(("smallint", "int2"), Integer(16)),
    **dict.fromkeys(("integer", "int", "int4"), Integer(32)),
    **dict.fromkeys(("bigint", "int8"), Integer(64)),
    **dict.fromkeys(("real", "float4", "double precision", "float8", "float"), _FLOAT),
    **dict.fromkeys(("numeric", "decimal"), _NUMERIC),
    **dict.fromkeys(("json", "jsonb"), _JSON),
}
# The types whose arrays are known to use a comma; extensions may use another separator, so their arrays stay text.
_COMMA_SEPARATED = re.compile(
    r"text|character varying|varchar|character|name|uuid|date|interval|(time|timestamp)(tz| with(out)? time zone)?"
)


def codec_for(type_name):
    """The codec of a type as ``format_type`` prints it, or by its short name."""
    name = re.sub(r"\([-\d, ]*\)", "", type_name).strip().lower()
    if name in _CODECS:
        return _CODECS[name]
    element = name[:-2] if name.endswith("[]") else None
    if element is None or not (element in _CODECS or _COMMA_SEPARATED.fullmatch(element)):
        return _TEXT
    return Array(_CODECS.get(element, _TEXT))


def _float_text(number):
    # float's own repr: numpy's floats would print their type, too.
    text = float.__repr__(number)
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(text, text)


def _storable(text):
    """PostgreSQL cannot store NUL, and UTF-8 cannot encode half a surrogate pair."""
    if "\0" in text:
        raise WrongValue("it has a NUL character, which PostgreSQL cannot store")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise WrongValue("it has half of a surrogate pair") from None
    return text


def _wrong(expected, value):
    return WrongValue(f"expected {expected}, got {type(value).__name__}")
