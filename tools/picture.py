# SPDX-License-Identifier: Apache-2.0
"""Draws docs/images/histogram.png: a histogram from the page of the shipped log.

    ./run demo && .venv/bin/python tools/picture.py        (needs what ./run test installs)
"""

import base64
import pathlib
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPORT = ROOT / "build" / "demo" / "digits-cnn.html"
CHART = "histogram/activation_grad"  # a key of the page's window.halfscopeViews


def main():
    options = webdriver.ChromeOptions()
    for argument in ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1400"]:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tempfile.mkdtemp()}")
    service = Service("/usr/bin/chromedriver")
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.get(REPORT.as_uri())
        find = "Object.keys(window.halfscopeViews ?? {})"
        keys = WebDriverWait(browser, 30).until(lambda b: b.execute_script(f"return {find}") or None)
        chart = CHART if CHART in keys else None
        if chart is None:
            raise SystemExit(f"{REPORT}: found the charts {keys}, want one with '{CHART}'")
        image = browser.execute_async_script(
            "const done = arguments[1];"
            "halfscopeViews[arguments[0]].background('white').toImageURL('png', 2).then(done)", chart)
    target = ROOT / "docs" / "images" / "histogram.png"
    target.write_bytes(base64.b64decode(image.split(",", 1)[1]))
    print(target)


if __name__ == "__main__":
    main()
