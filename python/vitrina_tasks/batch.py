"""One task with its parameters and columns, and how a batch passes through it: columns of texts → rows → columns."""

from collections.abc import Mapping
from operator import is_, itemgetter

from .params import parse_params
from .problems import TaskProblem, task_failed
from .values import Text, WrongValue, codec_for

_NONE = type(None)


class OpenTask:
    def __init__(self, task, params, columns, memory_mib=None):
        self.task = task
        self.memory_mib = memory_mib
        self.input = [tuple(column) for column in columns]
        self.params = parse_params(task.name, task.params, params)
        try:
            self.output = task.output_columns(self.input, self.params)
            self._codecs = [(name, type_name, codec_for(type_name)) for name, type_name in self.output]
        except Exception as error:
            raise task_failed(task.name, error) from error

    def apply(self, columns):
        """The number of rows, and for each column its texts, or None if it is unchanged."""
        decoded = [_decode(codec_for(type_name), texts) for (_, type_name), texts in zip(self.input, columns)]
        returned = self._run(self._rows(decoded))
        self._check_shape(returned)
        given = dict(zip(self.input, decoded))
        return len(returned), [self._encode(column, returned, given) for column in self._codecs]

    def _rows(self, columns):
        # Twice as fast as dict(zip(names, values)) for each row.
        empty = dict.fromkeys(name for name, _ in self.input)
        rows = [empty.copy() for _ in columns[0]]
        for (name, _), values in zip(self.input, columns):
            for row, value in zip(rows, values):
                row[name] = value
        return rows

    def _run(self, rows):
        try:
            result = self.task.function(rows, self.params)
            if isinstance(result, list):
                return result
            # A generator runs the task's code only now.
            returned = None if isinstance(result, (str, Mapping)) or not hasattr(result, "__iter__") else list(result)
        except BaseException as error:  # sys.exit() must not end the worker
            raise task_failed(self.task.name, error, self.memory_mib) from error
        if returned is None:
            raise TaskProblem(
                "TASK_RESULT_INVALID", f"Task {self.task.name} returned {type(result).__name__} instead of rows."
            )
        return returned

    def _check_shape(self, rows):
        if not all(type(row) is dict for row in rows):
            for number, row in enumerate(rows, 1):
                if not isinstance(row, Mapping):
                    raise self._wrong(number, None, f"it is not a dict but {type(row).__name__}")
        if set(map(len, rows)) <= {len(self.output)}:
            return
        # A column that the task leaves out may still be in the rows it was given.
        known = {name for name, _ in self.input} | {name for name, _ in self.output}
        for number, row in enumerate(rows, 1):
            for name in row:
                if name not in known:
                    raise self._wrong(number, name, "the task does not declare this column")

    def _encode(self, column, rows, given):
        name, type_name, codec = column
        try:
            values = list(map(itemgetter(name), rows))
        except KeyError:
            number = next(number for number, row in enumerate(rows, 1) if name not in row)
            raise self._wrong(number, name, "there is no value (None means: none)") from None
        before = given.get((name, type_name))
        if before is not None and not codec.mutable and len(before) == len(values) and all(map(is_, values, before)):
            return None
        return self._encode_values(name, codec, values)

    def _encode_values(self, name, codec, values):
        if isinstance(codec, Text) and set(map(type, values)) <= {str, _NONE}:
            try:
                codec.encode("".join(filter(None, values)))
                return values
            except WrongValue:
                pass  # one of them is wrong; the loop below finds which
        texts = []
        for value in values:
            try:
                texts.append(None if value is None else codec.encode(value))
            except (WrongValue, OverflowError) as error:
                raise self._wrong(len(texts) + 1, name, str(error)) from None
        return texts

    def _wrong(self, number, column, message):
        place = "" if column is None else f', column "{column}"'
        return TaskProblem(
            "TASK_RESULT_INVALID", f"Task {self.task.name} returned row {number}{place}: {message}."
        )


def _decode(codec, texts):
    read = codec.decode
    return texts if read is None else [None if text is None else read(text) for text in texts]
