"""What nobody asked for is not imported: programs start quickly."""

import subprocess
import sys

import pytest

HEAVY = ("numpy", "asyncio", "uvloop", "msgspec", "cloudpickle", "ssl", "logging")


def loaded(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(out.stdout.split())


def test_importing_daws_imports_next_to_nothing():
    found = loaded("import daws")
    assert not found.intersection(HEAVY)
    assert len([name for name in found if name.startswith("daws")]) == 1


def test_the_workers_start_before_the_rest_is_imported():
    assert not loaded("import daws; daws.Cluster").intersection(HEAVY)


def test_a_cluster_needs_no_numpy():
    code = "import daws\nwith daws.Cluster(1) as cluster: assert cluster.submit(pow, 2, 3).result() == 8"
    assert not loaded(code).intersection(("numpy", "cloudpickle"))


def test_everything_public_is_there_and_says_what_it_is():
    import daws

    for name in daws.__all__:
        assert getattr(daws, name).__doc__
    assert set(daws.__all__) == set(dir(daws))
    with pytest.raises(AttributeError, match="nothing"):
        daws.nothing  # type: ignore[attr-defined]  # noqa: B018
