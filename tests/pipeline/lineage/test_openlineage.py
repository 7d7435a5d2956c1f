"""A lineage as OpenLineage events."""

import itertools
import json
import uuid
from datetime import datetime

from pipeline.lineage.openlineage import openlineage_events


def test_events_are_those_of_openlineage(made, tmp_path):
    """Required keys and formats of spec/OpenLineage.json; outputs of one job are inputs of the
    next one by namespace and name."""
    events = [json.loads(line) for line in openlineage_events(made)]
    kinds = [(event["job"]["name"], event["eventType"]) for event in events]
    assert kinds == list(itertools.product(["vocab", "preprocess"], ["START", "COMPLETE"]))
    for event in events:
        assert {"eventTime", "run", "job", "producer", "schemaURL"} <= set(event)
        assert uuid.UUID(event["run"]["runId"]).version == 5
        facets = [event["run"]["facets"], *(item.get("facets", {}) for item in event["inputs"])]
        assert all({"_producer", "_schemaURL"} <= set(f) for each in facets for f in each.values())
    start, end = (datetime.fromisoformat(event["eventTime"]) for event in events[:2])
    assert (end - start).total_seconds() == 90
    names = [(item["namespace"], item["name"]) for item in events[3]["inputs"]]
    assert names == [("file", f"{tmp_path}/corpus.txt"), ("file", f"{tmp_path}/vocab.txt")]
    assert [item["name"] for item in events[1]["outputs"]] == [f"{tmp_path}/vocab.txt"]
    assert list(openlineage_events(made)) == list(openlineage_events(made))
