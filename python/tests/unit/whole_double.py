"""An in-memory double of the native jobs over whole data sets. Keys that contain `bad` fail, and those that contain `full` find no room in the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from reader_double import NativeError, Objects


class Job(NamedTuple):
    """What a job was started with."""

    spec: dict[str, Any]
    keys: tuple[object, ...]
    objects: Objects


jobs: list[Job] = []


def materialize_json(
    spec_json: str,
    credentials: object,
    target_credentials: object,
    objects: Objects,
    is_trial: bool,
    progress: Callable[..., object] | None,
) -> str:
    spec = json.loads(spec_json)
    jobs.append(Job(spec, (credentials, target_credentials), objects))
    if spec["target"][0] == "forbidden":
        raise NativeError("refused", "cannot write s3://forbidden/part: AccessDenied: no", None)
    size = spec.get("samples_per_part", 5)
    total, parts = len(objects), -(-len(objects) // size)
    if is_trial:
        costs = {"bytes": 10 * total, "cpu_seconds": 2.0, "seconds": 1.0}
        return json.dumps({"samples": total, "samples_per_part": size, "parts": parts, "parts_done": 0, **costs})
    for part in range(parts) if progress is not None else ():
        progress(min(total, size * (part + 1)), total, part + 1, parts, 10 * (part + 1))
    errors = _errors(objects)
    counts = {"samples": total - len(errors), "parts": parts, "parts_written": parts, "bytes": 10 * parts}
    return json.dumps({**counts, "cpu_seconds": 2.0, "seconds": 1.0, "errors": errors, "vanished": ["gone"]})


def warm_json(
    spec_json: str, credentials: object, objects: Objects, progress: Callable[..., object] | None
) -> str:
    jobs.append(Job(json.loads(spec_json), (credentials,), objects))
    total, errors = len(objects), _errors(objects)
    full = len(_named(objects, "full"))
    if progress is not None:
        progress(total, total)
    counts = {"samples": total, "cached": total - len(errors) - full, "found": 1, "not_cached": full}
    return json.dumps({**counts, "errors": errors, "wire_bytes_up": 1, "wire_bytes_down": 2, "seconds": 1.0})


def _errors(objects: Objects) -> list[dict[str, str]]:
    return [{"name": key, "code": "UndecodableObject", "message": "no photo"} for key in _named(objects, "bad")]


def _named(objects: Objects, part: str) -> list[str]:
    keys: list[str] = objects.keys()
    return [key for key in keys if part in key]
