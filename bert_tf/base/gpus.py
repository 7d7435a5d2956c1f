"""NVIDIA GPUs of this machine, and why TensorFlow cannot use one."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

HIDDEN = "-1"  # value of CUDA_VISIBLE_DEVICES that shows no GPU to a process
_QUERY = "--query-gpu=name,memory.total,compute_cap,driver_version"
_QUERY_CELLS = 4
_QUERY_SECONDS = 20  # a driver that does not answer by then never does
_CAPABILITY = re.compile(r"(?:sm|compute)_(\d+)(\d)$")
# The newest generation whose GPUs run kernels that TensorFlow compiles from PTX at first use; on
# later ones that fails (tensorflow issues 89272 and 97387).
_NEWEST_FROM_PTX = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU, as far as the driver knows it.

    Attributes:
        name: name of the model.
        memory: bytes; None if unknown.
        capability: compute capability, (major, minor); None if unknown.
        driver: version of the driver; None if unknown.
    """

    name: str = "an NVIDIA GPU"
    memory: int | None = None
    capability: tuple[int, int] | None = None
    driver: str | None = None


def nvidia_gpus(root: Path = Path("/"), query: Callable[[], str] | None = None) -> list[Gpu]:
    """List the GPUs, as `nvidia-smi` does, or without it as the kernel's driver or a container
    does.

    Args:
        root: root of the file system.
        query: returns the output of `nvidia-smi`; None runs it.
    """
    gpus = _listed((query or _nvidia_smi)())
    if gpus:
        return gpus
    names = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        with suppress(OSError):
            model = re.search(r"^Model:\s*(.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            names.append(Gpu(name=model[1]) if model else Gpu())
    return names or [Gpu() for _ in (root / "dev").glob("nvidia[0-9]*")]


@functools.cache  # it takes up to a second, and several parts of a command ask
def _nvidia_smi() -> str:
    command = ["nvidia-smi", _QUERY, "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.TimeoutExpired):  # also if there is no such program
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUERY_SECONDS)
        return "" if done.returncode else done.stdout
    return ""


def _listed(output: str) -> list[Gpu]:
    """Return the GPUs in the output of `nvidia-smi`, a line each."""
    gpus = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == _QUERY_CELLS:
            name, memory, capability, driver = cells
            major, _, minor = capability.partition(".")
            is_known = major.isdigit() and minor.isdigit()
            gpus.append(
                Gpu(
                    name=name,
                    memory=int(memory) << 20 if memory.isdigit() else None,
                    capability=(int(major), int(minor)) if is_known else None,
                    driver=driver,
                )
            )
    return gpus


def unusable_gpu() -> str | None:
    """Return why TensorFlow cannot use a GPU of this machine, and the remedy, in a line.

    None if it can, or if there is none.
    """
    gpus = nvidia_gpus()
    if not gpus:
        return None
    import tensorflow as tf

    return fault_of(
        gpus,
        tf.sysconfig.get_build_info(),
        version=tf.__version__,
        seen=len(tf.config.list_physical_devices("GPU")),
    )


def fault_of(
    gpus: Sequence[Gpu],
    build: Mapping[str, Any],
    *,
    version: str,
    seen: int,
    can_load: Callable[[str], bool] | None = None,
) -> str | None:
    """Return the result of `unusable_gpu` for given facts.

    Args:
        gpus: at least one; the first one is judged.
        build: result of `tf.sysconfig.get_build_info()`.
        version: version of TensorFlow.
        seen: number of GPUs that TensorFlow lists.
        can_load: returns whether a shared library can be loaded; None tries it.
    """
    gpu = gpus[0]
    can_load = can_load or _can_load
    install = f"pip install 'tensorflow[and-cuda]=={version}'"
    fault = f"{gpu.name} is not used: "
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", HIDDEN):
        return f"{fault}CUDA_VISIBLE_DEVICES={visible!r} hides it; unset the variable"
    if not build.get("is_cuda_build"):
        cure = install
        if platform.machine() not in ("x86_64", "AMD64"):
            cure = f"there is no TensorFlow wheel with CUDA for {platform.machine()}"
        return f"{fault}this TensorFlow is built without CUDA; {cure}"
    unfit = _unfit_capability(gpu, build, version)
    if unfit is not None:
        return fault + unfit
    if seen:
        return None
    if not can_load("libcuda.so.1"):
        return (
            f"{fault}its driver's libcuda.so.1 is missing; install NVIDIA's driver, or start the "
            "container with docker run --gpus all"
        )
    missing = [name for name in _libraries(build) if not can_load(name)]
    if missing:
        return f"{fault}{', '.join(missing)} cannot be loaded; {install}"
    driver = f" {gpu.driver}" if gpu.driver else ""
    return (
        f"{fault}CUDA {build.get('cuda_version')} does not start on driver{driver}; install a "
        "newer driver, or restart the machine if it was just updated"
    )


def _unfit_capability(gpu: Gpu, build: Mapping[str, Any], version: str) -> str | None:
    pairs = map(_CAPABILITY.match, build.get("cuda_compute_capabilities", ()))
    built = sorted((int(pair[1]), int(pair[2])) for pair in pairs if pair)
    if gpu.capability is None or not built:
        return None
    own = "{}.{}".format(*gpu.capability)
    if gpu.capability < built[0]:
        return (
            f"its compute capability {own} is below {'{}.{}'.format(*built[0])}, the least of "
            f"TensorFlow {version}; only an older TensorFlow or another GPU helps"
        )
    if gpu.capability[0] > max(built[-1][0], _NEWEST_FROM_PTX):
        return (
            f"its compute capability {own} is newer than {'{}.{}'.format(*built[-1])}, the last "
            f"that TensorFlow {version} is built for; install a later TensorFlow, or one from "
            "NVIDIA (https://catalog.ngc.nvidia.com), and set CUDA_VISIBLE_DEVICES=-1 until then"
        )
    return None


def _libraries(build: Mapping[str, Any]) -> list[str]:
    major = str(build.get("cuda_version", "12")).partition(".")[0]
    names = [f"lib{name}.so.{major}" for name in ("cudart", "cublas", "cusparse")]
    return [*names, f"libcudnn.so.{build.get('cudnn_version', '9')}"]


def _can_load(name: str) -> bool:
    """Load a library by the loader's path, or from `tensorflow[and-cuda]`'s packages."""
    with suppress(OSError):
        ctypes.CDLL(name)
        return True
    package = importlib.util.find_spec("nvidia")
    folders = package.submodule_search_locations if package is not None else None
    return any(next(Path(folder).glob(f"*/lib/{name}"), None) for folder in folders or ())
