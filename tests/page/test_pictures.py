# SPDX-License-Identifier: LGPL-2.1-or-later
"""The pictures of the documentation; with SUTRO_PAGE_SCREENSHOTS=DIR they are written there."""

import os
from pathlib import Path

import pytest
from conftest import Page

NAMED = os.environ.get("SUTRO_PAGE_SCREENSHOTS", "")
# Samples in the lines of a picture; those of the documentation are full.
SAMPLES = 60 if NAMED else 3
PATIENCE_S = 180
# Files lie below the folder of the fake machine.
WITHOUT_ROOT = """
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode())
    walk.currentNode.nodeValue = walk.currentNode.nodeValue.replaceAll(arguments[0], "");
"""
PICTURES = {
    "cockpit": ((1280, 1430), False, ""),
    "cockpit-explain": ((1440, 1130), True, "nginx.service"),
    "cockpit-narrow": ((420, 900), False, ""),
}


@pytest.mark.parametrize("name", PICTURES)
def test_picture(page: Page, tmp_path: Path, name: str) -> None:
    """A picture shows samples in each line, and is not empty."""
    size, dark, unit = PICTURES[name]
    page.open(size, dark=dark)
    if unit:
        page.click(f"#units button[data-unit='{unit}']")
        page.until(lambda: "Weight in systemd" in page.text("#explain"))
    page.until(lambda: points(page) >= SAMPLES, PATIENCE_S)
    page.driver.execute_script(WITHOUT_ROOT, str(page.sutrod.machine.root))
    file = (Path(NAMED) if NAMED else tmp_path) / f"{name}.png"
    page.driver.save_screenshot(str(file))
    assert file.stat().st_size > 20_000


def points(page: Page) -> int:
    """The points of the first line of the units."""
    lines = page.all(".units .sparkline .line")
    return len(lines[0].get_attribute("points").split()) if lines else 0
