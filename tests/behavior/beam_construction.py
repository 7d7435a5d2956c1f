"""Caches the look-ups that Beam repeats while it builds a pipeline.

For each step of a pipeline, Beam inspects the signatures of all methods of its `DoFn` four times
and parses all options anew: a second of the one and a half that a job on a small corpus takes.
"""

from __future__ import annotations

import functools


def keep_what_beam_looks_up() -> None:
    """Cache signatures of methods, and the views of a pipeline's options, in this process."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.transforms import core

    inspected, view_as = core.get_function_args_defaults, PipelineOptions.view_as
    views = {}

    @functools.cache
    def of_method(function):
        return inspected(function.__get__(object()))

    def arguments_and_defaults(function):
        if not hasattr(function, "__func__"):
            return inspected(function)
        arguments, defaults = of_method(function.__func__)
        return [*arguments], [*defaults]

    def view(self, kind):
        found = views.get(kind)
        if found is None or found._all_options is not self._all_options:  # of another pipeline
            found = views[kind] = view_as(self, kind)
        return found

    core.get_function_args_defaults = arguments_and_defaults
    PipelineOptions.view_as = view


def forget_threads() -> None:
    """Lets forks of this process run pipelines, though it has run one: they have no threads."""
    from apache_beam.utils import thread_pool_executor

    shared = thread_pool_executor._SharedUnboundedThreadPoolExecutor
    thread_pool_executor._SHARED_UNBOUNDED_THREAD_POOL_EXECUTOR = shared()
