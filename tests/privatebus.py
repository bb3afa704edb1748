# SPDX-License-Identifier: LGPL-2.1-or-later
"""A system bus for the processes of a test only."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
  "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow receive_sender="*"/>
  </policy>
  {policy}
</busconfig>
"""


class PrivateBus:
    """A dbus-daemon; DBUS_SYSTEM_BUS_ADDRESS is its address.

    It accepts connections as soon as the constructor returns: python-dbusmock's PrivateDBus
    waits for the socket for 1 s, which is too short on a busy machine.
    """

    def __init__(self, policy: str = "") -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="sutro-bus-"))
        self.directory.chmod(0o755)
        config = self.directory / "config"
        config.write_text(CONFIG.format(directory=self.directory, policy=policy))
        self.address = f"unix:path={self.directory}/bus"
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = self.address
        self.process = subprocess.Popen(
            ["dbus-daemon", "--nofork", "--print-address", f"--config-file={config}"],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout
        assert self.process.stdout.readline(), "dbus-daemon does not start"
        self.process.stdout.close()

    def stop(self) -> None:
        """End the bus, and with it the mocks that live on it."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
