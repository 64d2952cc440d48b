"""What Airflow asks an installed provider, without importing the rest of it."""

from __future__ import annotations

from typing import Any


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-provider-vitrina",
        "name": "Vitrina",
        "description": "Runs, checks and watches the pipelines of Vitrina.",
        "connection-types": [
            {
                "connection-type": "vitrina",
                "hook-class-name": "vitrina_provider.hook.VitrinaHook",
                "hook-name": "Vitrina",
                "ui-field-behaviour": _FIELD_BEHAVIOUR,
                "conn-fields": _EXTRA_FIELDS,
            }
        ],
        "extra-links": ["vitrina_provider.links.VitrinaRunLink"],
    }


_FIELD_BEHAVIOUR = {
    "hidden-fields": ["login", "extra"],
    "relabeling": {"schema": "http or https", "password": "API key"},
    "placeholders": {"host": "127.0.0.1", "port": "8000", "schema": "http"},
}

_EXTRA_FIELDS = {
    "ca_file": {
        "label": "CA file",
        "description": "Certificate of the authority that signed the API's certificate, as a file where tasks run.",
        "schema": {"type": ["string", "null"], "default": None},
    },
    "timeout_seconds": {
        "label": "Timeout of a request in seconds",
        "description": "How long the API may take to answer one request, beyond the time it was asked to wait.",
        "schema": {"type": ["number", "null"], "default": 30},
    },
    "patience_seconds": {
        "label": "Patience in seconds",
        "description": "How long a request that may be repeated is tried while the API is away or busy.",
        "schema": {"type": ["number", "null"], "default": 120},
    },
}
