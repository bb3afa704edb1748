# SPDX-License-Identifier: LGPL-2.1-or-later
"""Without sutro-stacking-dkms the stock modules are back. Runs last (conftest.py)."""

from pathlib import Path

from rig.dkms import kernel
from rig.shell import run
from test_stacking import MODULES, STOCK, out_of_tree


def test_stock_modules_come_back() -> None:
    """The package leaves nothing behind, and the drivers that it replaced load again."""
    updates = Path("/lib/modules", kernel(), "updates/dkms")
    assert {f"{module}.ko" for module in MODULES} <= {
        path.name.split(".ko")[0] + ".ko" for path in updates.iterdir()
    }
    run("dpkg", "--purge", "sutro-stacking-dkms", timeout_s=600)
    assert "sutro-stacking" not in run("dkms", "status")
    assert not list(Path("/usr/src").glob("sutro-stacking*"))
    assert not list(Path("/var/lib/dkms").glob("sutro-stacking*"))
    for module in MODULES:
        assert "/kernel/drivers/md/" in run("modinfo", "--filename", module)
    # Modules that depend on these are removed first.
    run("modprobe", "--remove", "--all", *STOCK)
    for module in [name for name in MODULES if name != "dm-mod"]:
        run("modprobe", "--remove", module)
        run("modprobe", module)
        assert not out_of_tree(module)
