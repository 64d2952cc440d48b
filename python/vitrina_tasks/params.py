"""The parameters of a task: a small schema, such as ``{"limit": {"type": "integer", "default": 10}}``."""

from .problems import TaskProblem

_TYPES = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_ENTRIES = {"type", "default", "required", "description"}


def check_schema(task, schema):
    """Refuses a mistake in the schema itself, when the task is defined."""
    for name, entry in schema.items():
        if not isinstance(entry, dict) or entry.get("type") not in _TYPES or set(entry) - _ENTRIES:
            raise TypeError(
                f"parameter {name!r} of task {task!r} must be a dict with a type ({', '.join(_TYPES)}) "
                "and, if need be, default, required and description"
            )
        default = entry.get("default")
        if default is not None and not _fits(default, entry["type"]):
            raise TypeError(f"the default of parameter {name!r} of task {task!r} must be of type {entry['type']}")


def json_schema(schema):
    properties = {
        name: {key: value for key, value in entry.items() if key != "required"} for name, entry in schema.items()
    }
    required = [name for name, entry in schema.items() if _is_required(entry)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def parse_params(task, schema, given):
    """The parameters with their defaults; every mistake at once."""
    if not isinstance(given, dict):
        raise _invalid(task, [("", "they must be a JSON object")])
    problems = [(f"/{name}", f"there is no parameter {name!r}") for name in given if name not in schema]
    params = {}
    for name, entry in schema.items():
        if name in given:
            params[name] = given[name]
            if not _fits(given[name], entry["type"]):
                problems.append((f"/{name}", f"{name!r} must be of type {entry['type']}"))
        elif _is_required(entry):
            problems.append((f"/{name}", f"{name!r} is missing"))
        else:
            params[name] = entry.get("default")
    if problems:
        raise _invalid(task, problems)
    return params


def _is_required(entry):
    return entry.get("required", "default" not in entry)


def _fits(value, type_name):
    if isinstance(value, bool) and type_name != "boolean":
        return False
    return isinstance(value, _TYPES[type_name])


def _invalid(task, problems):
    return TaskProblem(
        "TASK_PARAMS_INVALID",
        f"The parameters of task {task} are not valid: {'; '.join(message for _, message in problems)}.",
        [{"pointer": pointer, "message": message} for pointer, message in problems],
    )
