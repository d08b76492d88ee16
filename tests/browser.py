"""A real browser, driven through WebDriver, for tests of pages."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

NEEDED = ("chromium", "chromedriver")
missing = [program for program in NEEDED if shutil.which(program) is None]
needs_browser = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

DESKTOP, PHONE = (1400, 4000), (390, 4000)
# Visible figures with neither a picture nor a reason for its absence.
EMPTY = """
return [...document.querySelectorAll("figure[id^=figure-]:not([hidden])")]
  .filter((figure) => !figure.querySelector(".main-svg"))
  .filter((figure) => !figure.querySelector("figcaption > span")?.textContent)
  .map((figure) => figure.id)
"""


class Browser:
    """One browser for many pages; errors are collected per page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def opened(self, directory: Path, text: str, size: tuple[int, int] = DESKTOP) -> str:
        """The page's source in the browser after every figure is drawn."""
        path = directory / "report.html"
        path.write_text(text, encoding="utf-8")
        self.driver.set_window_size(*size)
        self.driver.get(path.as_uri())
        # Figures are drawn once they are visible, a frame later; a busy machine takes its time.
        WebDriverWait(self.driver, 60).until(self._settled, "figures stay empty")
        return self.driver.page_source

    def _settled(self, driver: webdriver.Chrome) -> bool:
        errors: list[object] = driver.get_log("browser")  # type: ignore[no-untyped-call]
        assert errors == []
        return not driver.execute_script(EMPTY)

    def overflow(self) -> int:
        """How far the page that is open reaches beyond the window's right edge, in pixels."""
        root = "document.documentElement"
        wide = self.driver.execute_script(f"return {root}.scrollWidth - {root}.clientWidth")
        assert isinstance(wide, int)
        return wide


def started(profile: Path) -> Iterator[Browser]:
    """A browser without a window, ended afterwards."""
    options = webdriver.ChromeOptions()
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = shutil.which("chromium") or ""
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with webdriver.Chrome(options, service) as driver:
        yield Browser(driver)


def drawn(document: str) -> set[str]:
    """The figures of a page that have a picture."""
    figures = re.findall(r'<figure id="figure-(\w+)"[^>]*>(.*?)</figure>', document, re.S)
    return {name for name, inside in figures if 'class="main-svg"' in inside}
