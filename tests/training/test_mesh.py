"""Several devices and several hosts: the same result as one device, up to rounding."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from neuralmjp import InputError, NeuralMJP, systems, write
from neuralmjp.training import Config
from neuralmjp.training.mesh import available_cores, join_hosts, mesh_of, on_all, on_one, with_mesh

HERE = Path(__file__).resolve().parent
HOST = {**os.environ, "JAX_PLATFORMS": "cpu"}


def sharded(*names: str) -> dict:
    command = [sys.executable, "-W", "ignore", str(HERE / "sharded.py"), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=HOST)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_same(found: dict, name: str) -> None:
    """Single precision, 20 steps: sums in another order are all that differs."""
    one, eight = (np.array(found[f"{name}, {mesh}"]) for mesh in (1, 8))
    assert np.isfinite(one).all()
    assert np.allclose(one, eight, rtol=2e-3, atol=2e-4), np.abs(one - eight).max()


def test_eight_devices_find_what_one_finds():
    found = sharded("tilted")
    assert found["devices"] == 8
    assert_same(found, "tilted")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "counts"])
def test_all_posteriors_are_shared_out(name):
    assert_same(sharded(name), name)


@pytest.mark.slow
def test_two_hosts_find_what_one_finds(tmp_path):
    """Two processes that know nothing of each other but an address; the first alone writes."""
    write(systems.TwoMode().simulate(8, 20, seed=1).data, tmp_path / "two.csv")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    tiny = [f"--set={x}" for x in ("width=8", "batch=4", "steps=20", "round_steps=10", "mesh=0")]
    fit = [sys.executable, "-m", "neuralmjp", "fit", "two.csv", "--states=2", "--engine=neural", "--time-unit=s", *tiny]

    def started(*more: str) -> subprocess.Popen:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen([*fit, *more], cwd=tmp_path, env=HOST, **streams)

    hosts = [started(f"--set=hosts={address},2,{k}", "--out=run", f"--json={k}.json") for k in range(2)]
    told = [host.communicate(timeout=600)[0] for host in hosts]
    assert [host.returncode for host in hosts] == [0, 0], told
    alone = started("--json=alone.json")
    alone.communicate(timeout=600)
    assert alone.returncode == 0
    both, one = (json.loads((tmp_path / name).read_text()) for name in ("0.json", "alone.json"))
    assert np.isclose(both["elbo"], one["elbo"], rtol=1e-4)
    assert np.allclose(both["rates"]["mean"], one["rates"]["mean"], rtol=1e-3)
    assert not (tmp_path / "1.json").exists()
    assert (tmp_path / "run" / "model.json").exists()


class TestWithOneDevice:
    def test_nothing_is_done(self):
        tree = {"x": np.arange(3)}
        assert mesh_of(Config()) is None
        assert on_all(Config(), tree) is tree
        assert on_one(Config(), tree) is tree
        join_hosts("")

    def test_all_there_are(self):
        expected = None if jax.device_count() == 1 else jax.device_count()
        mesh = mesh_of(Config(mesh=0))
        assert (mesh and mesh.size) == expected

    def test_more_than_there_are(self):
        with pytest.raises(InputError, match="mesh asks for 1000 devices, but there are"):
            mesh_of(Config(mesh=1000))

    @pytest.mark.parametrize("hosts", ["here", "a,b,c", "1.2.3.4:5,2"])
    def test_hosts_that_are_none(self, hosts):
        with pytest.raises(InputError, match="ADDRESS:PORT,NUMBER,INDEX"):
            join_hosts(hosts)

    def test_a_run_may_go_on_elsewhere(self, tmp_path):
        """Devices and hosts are not what makes two runs different."""
        data = systems.TwoMode().simulate(8, 20, seed=1).data
        tiny = {"width": 8, "batch": 4, "steps": 20, "round_steps": 10}
        NeuralMJP(2, changes=tiny).train(data, folder=tmp_path)
        NeuralMJP(2, changes=tiny | {"mesh": 0}).train(data, folder=tmp_path, resume=True)


def test_batches_are_shared_evenly(monkeypatch):
    from neuralmjp.training import mesh as module

    monkeypatch.setattr(module, "mesh_of", lambda config: type("Three", (), {"size": 3}))
    with pytest.raises(InputError, match="a batch of 64 series cannot be shared evenly by 3 devices"):
        module.with_mesh(Config(mesh=3), 64)


@pytest.mark.parametrize("mesh", [0, 1, 2, 1000])
def test_cores_are_devices_where_there_is_no_card(mesh):
    """As many as are asked for, if there are as many."""
    code = f"from neuralmjp.training.mesh import *\ncores_as_devices({mesh})\nprint(jax.device_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=HOST, check=True)
    cores = available_cores()
    assert int(done.stdout) == {0: cores, 2: min(cores, 2)}.get(mesh, 1)


def test_all_devices_that_share_a_batch_evenly(monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 12)
    assert [with_mesh(Config(mesh=0), batch).mesh for batch in (64, 10, 7, 96)] == [8, 10, 7, 12]
    assert with_mesh(Config(), 7).mesh == 1
