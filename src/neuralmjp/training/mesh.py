"""Several devices, on one host or many: each computes its part of every batch; networks are the same on all.

Devices are cards, or, without one, cores of the processor, once `cores_as_devices` has said so.

JAX's own sharding does the work. A program is written for one device; where the series of a batch are told to lie on
different ones, the compiler splits what is done to them and sums the gradients.
"""

import os
from contextlib import suppress
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..errors import InputError
from .config import Config

SERIES = "series"
CORES_FLAG = "xla_force_host_platform_device_count"  # somebody has said how many
Tree = TypeVar("Tree")


def mesh_of(config: Config) -> Mesh | None:
    """The devices that share a batch, of all hosts together; None where there is one."""
    devices = jax.devices()
    n = config.mesh or len(devices)
    if n > len(devices):
        raise InputError(
            f"mesh asks for {n} devices, but there are {len(devices)}: lower it, or 0 for all; cores of a processor "
            "become devices by jax.config.update('jax_num_cpu_devices', N), before anything else"
        )
    return Mesh(np.array(devices[:n]), (SERIES,)) if n > 1 else None


def with_mesh(config: Config, batch: int) -> Config:
    """The same for so many devices as share a batch evenly: where all may be used, the most that do."""
    if config.mesh == 0 and jax.process_count() == 1:
        most = max(n for n in range(1, jax.device_count() + 1) if batch % n == 0)
        return config.changed(mesh=most)
    mesh = mesh_of(config)
    if mesh is not None and batch % mesh.size:
        raise InputError(
            f"a batch of {batch} series cannot be shared evenly by {mesh.size} devices: make batch a multiple of that, "
            "or mesh smaller"
        )
    return config


def on_all(config: Config, tree: Tree) -> Tree:
    """The same arrays on every device."""
    mesh = mesh_of(config)
    if mesh is None:
        return tree
    everywhere = NamedSharding(mesh, PartitionSpec())
    if jax.process_count() == 1:
        return jax.device_put(tree, everywhere)
    return jax.tree.map(lambda x: _on_all_hosts(x, everywhere), tree)


def _on_all_hosts(x: Any, everywhere: NamedSharding) -> jax.Array:
    """Every host has the same array, and gives it to its own devices."""
    if isinstance(x, jax.Array) and jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_on_all_hosts(jax.random.key_data(x), everywhere))
    known = np.asarray(x)
    return jax.make_array_from_callback(known.shape, everywhere, lambda part: known[part])


def kept_on_all(config: Config, tree: Tree) -> Tree:
    """`on_all`, inside a program."""
    return _told(config, tree, lambda _: PartitionSpec())


def shared_out(config: Config, batch: Tree) -> Tree:
    """Inside a program: every device has some of the series, which are the first axis of all arrays with any."""
    return _told(config, batch, lambda x: PartitionSpec(SERIES) if x.ndim else PartitionSpec())


def _told(config: Config, tree: Tree, place: Any) -> Tree:
    mesh = mesh_of(config)
    if mesh is None:
        return tree
    return jax.tree.map(lambda x: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, place(x))), tree)


def on_one(config: Config, tree: Tree) -> Tree:
    """Arrays that are the same on all devices, on the first of this host alone, where the rest of the work is done."""
    return tree if mesh_of(config) is None else jax.tree.map(jax.numpy.asarray, jax.device_get(tree))


def cores_as_devices(mesh: int) -> None:
    """Let cores of the processor be devices, as many as a mesh asks for; of use without a card. Before anything else.

    Left to itself, JAX takes the whole processor for one device and shares every single operation among the cores,
    most of which are too small for it.
    """
    if mesh in (0, *range(2, available_cores() + 1)) and CORES_FLAG not in os.environ.get("XLA_FLAGS", ""):
        with suppress(RuntimeError):  # JAX has begun: there are as many devices as there are
            jax.config.update("jax_num_cpu_devices", mesh or available_cores())


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def join_hosts(hosts: str) -> None:
    """Make one mesh of the devices of several hosts, each of which runs the same command. Before anything else.

    Args:
        hosts: "" for this host alone; "auto" where a cluster manager says who is there (SLURM, Open MPI, Kubernetes,
            Cloud TPU); else ADDRESS:PORT of the first host, their number, and which of them this is, from 0:
            "10.0.0.1:1234,4,0".
    """
    if not hosts:
        return
    try:
        if hosts == "auto":
            jax.distributed.initialize()
        else:
            address, n, index = hosts.split(",")
            jax.distributed.initialize(address, int(n), int(index))
    except ValueError as error:
        raise InputError(
            f"hosts is auto, where a cluster manager is found, or ADDRESS:PORT,NUMBER,INDEX; got {hosts!r} ({error})"
        ) from None
    except RuntimeError as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(f"the hosts {hosts} could not be joined: {words}") from None


def leave_hosts() -> None:
    """Wait until all hosts are done: the first keeps the others together, who end with it."""
    if jax.distributed.is_initialized():
        jax.distributed.shutdown()


def writes() -> bool:
    """Whether this process is the one of several that writes files."""
    return jax.process_index() == 0
