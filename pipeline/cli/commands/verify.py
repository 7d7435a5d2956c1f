"""`bert-pipeline verify`."""

import click

from pipeline.cli.usage import HELP_FLAGS, PlainCommand


@click.command("verify", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def command(paths: tuple[str, ...]) -> int:
    """Compares the files of artifacts with the SHA-256 in their manifests.

    Every file is read in full. Exits with 1 if any is missing or not what was written.

    \b
    Example:
      bert-pipeline verify model scored.csv
    """
    from pipeline.jobs.verification import verify

    are_whole = [verify(path) for path in paths]
    return 0 if all(are_whole) else 1
