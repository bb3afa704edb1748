# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page of Cockpit in headless Chromium: its contents, and the actions of a user.

It is for tests/page and tests/vm/test_cockpit.py, and needs chromium-driver and python3-selenium.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement


@dataclass
class Page:
    """A page in a browser, at the moment of a test."""

    # The time for contents that appear with the next sample of the page.
    PATIENCE_S: ClassVar[float] = 30
    PAUSE_S: ClassVar[float] = 0.05

    driver: webdriver.Chrome

    def until(self, condition: Callable[[], Any], patience_s: float = 0) -> Any:
        """Wait for a condition of the page."""
        deadline = time.monotonic() + (patience_s or self.PATIENCE_S)
        while not (found := condition()):
            assert time.monotonic() < deadline, self.text("body")
            time.sleep(self.PAUSE_S)
        return found

    def one(self, selector: str) -> WebElement:
        """The element of a CSS selector."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """The text of an element as it is shown, "" without one."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return self.driver.execute_script(script, selector)

    def rows(self, section: str) -> list[list[str]]:
        """The texts of the cells of a table, in one step."""
        script = """return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
            .map(row => [...row.cells].map(cell => cell.innerText.trim()))"""
        return self.driver.execute_script(script, section)

    def row(self, section: str, *words: str) -> list[str]:
        """The row whose first cells are these; [] if there is none."""
        found = [r for r in self.rows(section) if tuple(r[: len(words)]) == words]
        return found[0] if found else []

    def click(self, selector: str) -> None:
        """Click an element, which may have been drawn anew."""
        self.until(lambda: self.all(selector))
        self.one(selector).click()

    def fill(self, name: str, text: str) -> None:
        """Write into a field of the dialog."""
        field = self.one(f"#field-{name}")
        field.clear()
        field.send_keys(text)

    def complaints(self) -> list[str]:
        """The log of the browser: errors of scripts, and violations of the security policy."""
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def submit(self) -> None:
        """Press the button of the dialog."""
        self.one("#dialog button[type=submit]").click()

    def closed(self) -> bool:
        """No dialog is open."""
        return not self.all("dialog[open]")

    def edit(self, unit: str, about: str) -> None:
        """Open the dialog of a guarantee, which reads the settings of the unit first."""
        self.click(f"button[data-action=edit][aria-label^='Edit {about} of {unit}']")
        self.until(lambda: not self.closed())

    def add(self, unit: str, key: str, path: str, value: str) -> None:
        """Fill the dialog of a new guarantee."""
        self.click("button[data-action=add]")
        self.fill("unit", unit)
        self.one(f"#field-key option[value={key}]").click()
        self.fill("path", path)
        self.fill("value", value)
        self.submit()


@contextmanager
def chromium(profile: Path, *logs: str) -> Iterator[webdriver.Chrome]:
    """Chromium of Debian with a folder for its profile, and these logs beside that of scripts."""
    options = webdriver.ChromeOptions()
    for word in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
        "--no-first-run", "--disable-background-networking", "--disable-extensions",
        "--hide-scrollbars", "--force-device-scale-factor=1", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", dict.fromkeys(("browser", *logs), "ALL"))
    driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
    try:
        yield driver
    finally:
        driver.quit()
