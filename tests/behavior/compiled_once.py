"""Functions of Numba that several processes of tests need at once: one compiles, others wait.

Where nothing is cached yet, all of them would spend half a minute on the same functions.
"""

from __future__ import annotations

import fcntl
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def compile_once() -> Callable[[], None]:
    """Have this process and its forks compile each cached function one at a time.

    Returns:
        What removes the files of the locks.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher, NullCache

    folder = Path(tempfile.mkdtemp(prefix="compiled-once-"))
    compile_now = Dispatcher.compile
    held: set[str] = set()  # by this process; another type of the same function may be needed

    @functools.wraps(compile_now)
    def compile_or_load(self: Any, signature: Any) -> Any:
        if isinstance(self._cache, NullCache) or not folder.exists():
            return compile_now(self, signature)
        function = self.py_func
        name = f"{function.__module__}.{function.__qualname__}"
        # Numba's lock first: another thread may hold it, and wait for this file in turn.
        with global_compiler_lock:
            if name in held:
                return compile_now(self, signature)
            held.add(name)
            try:
                with (folder / name).open("w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    return compile_now(self, signature)
            finally:
                held.discard(name)

    Dispatcher.compile = compile_or_load
    return functools.partial(shutil.rmtree, folder, ignore_errors=True)
