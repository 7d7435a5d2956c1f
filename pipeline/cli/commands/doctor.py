"""`bert-pipeline doctor`."""

import json

import click

from pipeline.cli.startup import VERBOSE_HELP, filtered_third_party_output
from pipeline.cli.usage import HELP_FLAGS, PlainCommand


@click.command("doctor", cls=PlainCommand, context_settings=HELP_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="print the findings as JSON")
@click.option("--verbose", is_flag=True, help=VERBOSE_HELP)
def command(as_json: bool, verbose: bool) -> int:
    """Checks this machine and the installation: packages, devices, tokenizer, Beam, speed.

    \b
    Example:
      bert-pipeline doctor
    """
    findings = []
    with filtered_third_party_output(verbose=verbose):
        from pipeline.jobs.doctor import examine

        for finding in examine():
            findings.append(finding)
            if not as_json:
                verdict = "ok  " if finding.passed else "FAIL"
                click.echo(f"{verdict}  {finding.name}: {finding.detail}")
    if as_json:
        click.echo(json.dumps([vars(finding) for finding in findings], indent=2))
    return 0 if all(finding.passed for finding in findings) else 1
