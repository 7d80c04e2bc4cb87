# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/histogram.png: a histogram from a page, by default that of the shipped log.

    ./run demo && .venv/bin/python tools/picture.py [PAGE [PICTURE]]    (needs what ./run test installs)
"""

import base64
import pathlib
import sys
import tempfile

from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPORT = ROOT / "build" / "demo" / "digits-cnn.html"
CHART = "histogram/activation_grad"  # a key of the page's window.halfscopeViews


def main(report=REPORT, target=ROOT / "docs" / "images" / "histogram.png"):
    report, target = pathlib.Path(report).resolve(), pathlib.Path(target)
    options = webdriver.ChromeOptions()
    for argument in ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1400"]:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tempfile.mkdtemp()}")
    service = Service("/usr/bin/chromedriver")
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.get(report.as_uri())
        # Charts of a section are drawn when it is opened.
        browser.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
        find = "return Object.keys(window.halfscopeViews ?? {})"
        try:
            WebDriverWait(browser, 30).until(lambda b: CHART in b.execute_script(find))
        except TimeoutException:
            raise SystemExit(f"{report}: found the charts {browser.execute_script(find)}, expected '{CHART}' among "
                             "them") from None
        image = browser.execute_async_script(
            "const done = arguments[1];"
            "halfscopeViews[arguments[0]].background('white').toImageURL('png', 2).then(done)", CHART)
    target.write_bytes(base64.b64decode(image.split(",", 1)[1]))
    print(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
