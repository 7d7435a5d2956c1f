"""Names of the files of a model directory that say what the model is."""

CONFIG = "config.json"
TASK = "task.json"
