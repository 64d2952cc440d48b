"""For tests of tasks: rows are handled as in a pipeline, so a value of the wrong type is found, too."""

from decimal import Decimal

from .batch import OpenTask
from .registry import Task
from .values import codec_for


def run_task(task, rows, params=None, types=None):
    """The rows that the task, or its function, returns; they go through PostgreSQL's texts on their way in and out.

    Types that are not given follow from the first value of each column.
    """
    types = {**_infer_types(rows), **(types or {})}
    opened = OpenTask(task if isinstance(task, Task) else task.vitrina_task, params or {}, types.items())
    columns = [_texts(rows, name, codec_for(type_name)) for name, type_name in types.items()]
    count, returned = opened.apply(columns)
    before = dict(zip(types, columns))
    values = []
    for (name, type_name), texts in zip(opened.output, returned):
        read = codec_for(type_name).decode or str
        texts = before[name] if texts is None else texts
        values.append([None if text is None else read(text) for text in texts])
    names = [name for name, _ in opened.output]
    return [dict(zip(names, row)) for row in zip(*values)] if count else []


def _infer_types(rows):
    types = {}
    for row in rows:
        for name, value in row.items():
            if value is not None or name not in types:
                types.setdefault(name, None)
                types[name] = types[name] or _type_of(value)
    return {name: type_name or "text" for name, type_name in types.items()}


def _type_of(value):
    if isinstance(value, list):
        return f"{next(filter(None, map(_type_of, value)), 'text')}[]"
    names = {bool: "boolean", int: "bigint", float: "double precision", Decimal: "numeric", str: "text", dict: "jsonb"}
    return names.get(type(value))


def _texts(rows, name, codec):
    values = [row.get(name) for row in rows]
    # Text in a file may be of any type, like PostgreSQL's own text.
    return [value if value is None or isinstance(value, str) else codec.encode(value) for value in values]
