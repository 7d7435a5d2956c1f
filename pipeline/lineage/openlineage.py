"""A lineage as events of OpenLineage."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline.lineage.trace import Made, Source, finished, steps

_NAMESPACE = "bert-pipeline"
_SPEC = "https://openlineage.io/spec"
_EVENT_SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_VERSION_SCHEMA = f"{_SPEC}/facets/1-0-1/DatasetVersionDatasetFacet.json"
_ENGINE_SCHEMA = f"{_SPEC}/facets/1-1-1/ProcessingEngineRunFacet.json"


def openlineage_events(made: Made) -> Iterator[str]:
    """The `START` and `COMPLETE` events of OpenLineage of every job, as lines of JSON, earlier jobs
    first.

    The id of a run is made from its manifest's checksum, so that an event that is sent twice is
    the same event. Versions of datasets are their SHA-256.

    Follows https://openlineage.io/spec/2-0-2/OpenLineage.json.
    """
    for step in steps(made):
        end = finished(step)
        start = end - timedelta(seconds=step.manifest.get("timings", {}).get("total", 0.0))
        for kind, time in (("START", start), ("COMPLETE", end)):
            yield json.dumps(_event(step, kind, time), ensure_ascii=False)


def _event(step: Made, kind: str, time: datetime) -> dict[str, Any]:
    manifest = step.manifest
    version = manifest.get("versions", {}).get("bert-pipeline", "unknown")
    producer = f"urn:bert-pipeline:{version}"

    def facet(schema: str, **content: str) -> dict[str, str]:
        return {"_producer": producer, "_schemaURL": schema, **content}

    def dataset(path: str | Path, sha256: str) -> dict[str, Any]:
        facets = {"version": facet(_VERSION_SCHEMA, datasetVersion=sha256)}
        return {**_dataset_name(str(path)), "facets": facets}

    def read(source: Source) -> dict[str, Any]:
        if source.made is not None:  # as it is called among the outputs of the job that made it
            return _dataset_name(str(source.made.path))
        return dataset(source.place or source.path, source.sha256)

    if step.path.is_dir():
        outputs = [_dataset_name(str(step.path))]
    else:
        made = manifest.get("outputs", [])
        outputs = [dataset(step.path.with_name(each["path"]), each["sha256"]) for each in made]
    engine = facet(
        _ENGINE_SCHEMA, name=_NAMESPACE, version=version, openlineageAdapterVersion=version
    )
    identity = manifest.get("checksum") or str(step.path.resolve())
    return {
        "eventType": kind,
        "eventTime": time.isoformat(),
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_OID, identity)),
            "facets": {"processing_engine": engine},
        },
        "job": {"namespace": _NAMESPACE, "name": manifest.get("command", "")},
        "inputs": [read(source) for source in step.sources],
        "outputs": outputs,
        "producer": producer,
        "schemaURL": _EVENT_SCHEMA,
    }


def _dataset_name(path: str) -> dict[str, str]:
    """As https://openlineage.io/docs/spec/naming has it for files and buckets."""
    if "://" in path:
        parts = urlsplit(path)
        return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path.lstrip("/")}
    return {"namespace": "file", "name": str(Path(path).absolute())}
