"""Score new and changed files every night with Apache Airflow 3.

Copy this file into Airflow's folder of DAGs and set the paths. `score --update` leaves files alone
that are scored already, exits with 0 if there is nothing to do, and goes on with the blocks that
are left after a task was killed. Exit codes 2 and 3 (wrong usage or config, too many rejected
rows) fail the task at once, since trying again would not help.
"""

from __future__ import annotations

import subprocess

from airflow.exceptions import AirflowFailException
from airflow.sdk import dag, task

COMMAND = (
    *("bert-pipeline", "score"),
    *("--model", "/data/model"),
    *("--input", "/data/new/*.csv"),
    *("--output", "/data/scored"),
    *("--max-rejects", "10%"),
    "--update",
)
NEVER_RETRIED = (2, 3)


@dag(schedule="0 3 * * *", catchup=False, max_active_runs=1)
def score_new_files() -> None:
    @task(retries=5)
    def score() -> None:
        code = subprocess.run(COMMAND, check=False).returncode
        if code in NEVER_RETRIED:
            raise AirflowFailException(f"bert-pipeline score: exit code {code}; see its log")
        if code:  # killed, or a fault of the machine
            raise RuntimeError(f"bert-pipeline score: exit code {code}")

    score()


score_new_files()
