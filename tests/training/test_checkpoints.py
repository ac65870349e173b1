"""Checkpoints as files: written whole, the last good one found again, nothing foreign let in."""

import json
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from neuralmjp import InputError
from neuralmjp.training.checkpoints import FOLDER, Checkpoints


def newest(folder):
    return max((folder / FOLDER).glob("*.npz"))


class Trap:
    """Whoever unpickles this leaves a trace."""

    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


TREE = {"a": jnp.arange(3.0), "b": [jnp.zeros((2, 2)), jnp.array(5)]}


def accepted(note):
    return note


def filled(folder, *steps, keep=2):
    """Checkpoints of a run, whose objective is highest at step 4."""
    kept = Checkpoints(folder, keep)
    for step in steps:
        kept.save({**TREE, "a": TREE["a"] + step}, {"step": step}, step=step, objective=-abs(step - 4.0))
    return kept


def files(folder):
    return sorted(path.name for path in (folder / FOLDER).iterdir())


class TestCheckpoints:
    def test_back_and_forth(self, tmp_path):
        Checkpoints(tmp_path).save(TREE, {"note": [1, float("-inf")]}, step=7)
        found, meta = Checkpoints(tmp_path).load(TREE, accepted)
        assert meta == {"note": [1, float("-inf")]}
        for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(TREE), strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
        assert files(tmp_path) == ["000007.npz", "index.json"]

    def test_none(self, tmp_path):
        assert Checkpoints(tmp_path).load(TREE, accepted) is None
        assert Checkpoints(tmp_path / "nothing").load(TREE, accepted) is None

    def test_the_last_and_the_best_are_kept(self, tmp_path):
        filled(tmp_path, 2, 4, 6, 8, 1_000_000)
        assert files(tmp_path) == ["000004.npz", "000008.npz", "1000000.npz", "index.json"]
        assert Checkpoints(tmp_path).load(TREE, accepted)[1] == {"step": 1_000_000}  # by number, not as text

    def test_what_was_kept_is_known_when_a_run_goes_on(self, tmp_path):
        filled(tmp_path, 2, 4, 6)
        again = Checkpoints(tmp_path)
        again.load(TREE, accepted)
        again.save(TREE, {"step": 8}, step=8, objective=-9.0)
        assert files(tmp_path) == ["000004.npz", "000006.npz", "000008.npz", "index.json"]

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
    def test_a_truncated_file(self, tmp_path, share, caplog):
        """The one before is used, in as many words; the broken one is replaced in time."""
        filled(tmp_path, 2, 4, 6)
        whole = newest(tmp_path).read_bytes()
        newest(tmp_path).write_bytes(whole[: int(share * len(whole))])
        kept = Checkpoints(tmp_path)
        assert kept.load(TREE, accepted)[1] == {"step": 4}
        (line,) = caplog.messages
        assert "000006.npz" in line
        assert line.endswith("going on from step 4 instead")
        assert "\n" not in line
        assert [entry.step for entry in kept.entries] == [4]

    def test_a_flipped_bit(self, tmp_path, caplog):
        filled(tmp_path, 2, 4, 6)
        whole = bytearray(newest(tmp_path).read_bytes())
        whole[whole.index(np.arange(6.0, 9.0).tobytes()) + 5] ^= 1
        newest(tmp_path).write_bytes(whole)
        assert Checkpoints(tmp_path).load(TREE, accepted)[1] == {"step": 4}
        assert "000006.npz, array 'leaf_0000': is damaged" in caplog.text

    def test_none_is_whole(self, tmp_path):
        filled(tmp_path, 2, 4, 6)
        for path in (tmp_path / FOLDER).glob("*.npz"):
            path.write_bytes(path.read_bytes()[:100])
        self.refused(tmp_path, r"000006\.npz.*000004\.npz.*to start anew")

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"checkpoints": 3}', '{"checkpoints": [{"step": "x"}]}', "[" * 9999]
    )
    def test_a_broken_index(self, tmp_path, caplog, text):
        filled(tmp_path, 2, 4, 6)
        (tmp_path / FOLDER / "index.json").write_text(text)
        assert Checkpoints(tmp_path).load(TREE, accepted)[1] == {"step": 6}
        assert "index.json cannot be read" in caplog.text

    def test_an_index_of_a_later_version(self, tmp_path):
        filled(tmp_path, 2)
        index = tmp_path / FOLDER / "index.json"
        index.write_text(json.dumps({**json.loads(index.read_text()), "version": 2}))
        self.refused(tmp_path, "checkpoints of version 2, not 1")

    @pytest.mark.parametrize("kind", ["text", "npy", "npz", "pickle", "pickled array", "not json"])
    def test_a_foreign_file(self, tmp_path, kind):
        filled(tmp_path, 2)
        with open(newest(tmp_path), "wb") as file:
            if kind == "text":
                file.write(b"hello\nworld")
            elif kind == "npy":
                np.save(file, np.arange(3))
            elif kind == "npz":
                np.savez(file, x=np.arange(3))
            elif kind == "pickle":
                pickle.dump(Trap(), file)
            elif kind == "pickled array":
                np.savez(file, meta=np.array([Trap()], dtype=object), allow_pickle=True)
            else:
                np.savez(file, meta=np.frombuffer(b"{", np.uint8), leaf_0000=np.arange(3))
        self.refused(tmp_path, r"000002\.npz.*to start anew")

    @pytest.mark.parametrize(
        "other",
        [
            {"a": jnp.arange(4.0), "b": [jnp.zeros((2, 2)), jnp.array(5)]},
            {"a": jnp.arange(3.0), "b": [jnp.zeros((2, 2))]},
            {"a": jnp.arange(3, dtype=jnp.float32), "b": [jnp.zeros((2, 2)), jnp.array(5)]},
        ],
    )
    def test_another_model(self, tmp_path, other):
        Checkpoints(tmp_path).save(other, {}, step=1)
        self.refused(tmp_path, "another model")

    def test_killed_while_writing(self, tmp_path, monkeypatch):
        """The last whole one stays."""
        kept = filled(tmp_path, 1)
        monkeypatch.setattr(np, "savez", lambda file, **_: file.write(b"PK half") and 1 / 0)
        with pytest.raises(ZeroDivisionError):
            kept.save(TREE, {"step": 2}, step=2)
        assert Checkpoints(tmp_path).load(TREE, accepted)[1] == {"step": 1}

    def test_killed_between_checkpoint_and_index(self, tmp_path, monkeypatch):
        kept = filled(tmp_path, 1)
        monkeypatch.setattr("neuralmjp.training.checkpoints.write_whole_text", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            kept.save(TREE, {"step": 2}, step=2)
        assert Checkpoints(tmp_path).load(TREE, accepted)[1] == {"step": 1}

    def refused(self, folder, message):
        with pytest.raises(InputError, match=message) as error:
            Checkpoints(folder).load(TREE, accepted)
        assert "\n" not in str(error.value)
        assert str(folder) in str(error.value)
