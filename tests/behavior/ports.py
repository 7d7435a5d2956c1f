"""Ports for processes that listen on loopback."""

import contextlib
import os
import socket
from pathlib import Path


def free_ports(count):
    """Ports that are still free when they are used: below those given to whoever asks for any."""
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = []
    for port in range(lowest_given - 1 - os.getpid() % 1000 * 10, 1024, -1):
        with contextlib.suppress(OSError), socket.socket() as trial:
            trial.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free port")
