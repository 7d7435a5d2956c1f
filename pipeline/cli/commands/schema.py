"""`bert-pipeline schema`."""

import json

import click

from pipeline.cli.usage import HELP_FLAGS, PlainCommand


@click.command("schema", cls=PlainCommand, context_settings=HELP_FLAGS)
def command() -> None:
    """Prints the JSON Schema of config files, with every key, its type, bounds and default.

    Editors use the schema to complete and check YAML files: write it to a file and begin the
    config with "# yaml-language-server: $schema=FILE".

    \b
    Example:
      bert-pipeline schema
    """
    from bert_tf.config.json_schema import config_schema
    from bert_tf.config.sections import SECTIONS
    from bert_tf.tasks.registry import TASKS

    tasks = {name: task.options for name, task in TASKS.items()}
    schema = config_schema(SECTIONS, {"finetune": ("task", tasks)})
    click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
