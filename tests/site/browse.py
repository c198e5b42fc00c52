"""Open every page of build/site from the disk in Debian's Chromium, and print what is wrong.

Run by ``test_site.py`` with the site's own Python, because its packages are newer than MXNet's.
"""

import json
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

SITE = Path(__file__).resolve().parents[2] / "build" / "site"
CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 120_000  # other tests keep the processors busy
PHONE = {"width": 390, "height": 844}


def look(page, path):
    """Return what one page prints, asks for, weighs, how wide it is, and what axe says of it."""
    told, asked = [], []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.emulate_media(color_scheme="light")
    page.goto(path.as_uri())
    files = {Path(unquote(urlsplit(url).path)) for url in asked if url.startswith("file:")}
    sizes = {file.suffix: 0 for file in files}
    for file in files:
        sizes[file.suffix] += file.stat().st_size
    found = {
        "elsewhere": [url for url in asked if not url.startswith(("file:", "data:"))],
        "bytes": sizes,
        "width": page.evaluate("document.documentElement.scrollWidth"),
        "broken_images": page.evaluate(
            "[...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
        ),
        "axe": violations(page),
    }
    page.emulate_media(color_scheme="dark")
    found["axe_dark"] = violations(page, runOnly=["color-contrast"])
    return {"console": told, **found}


def violations(page, **options):
    """Return axe's rules that elements of the page break, with the start of these."""
    options = {"preload": False, "resultTypes": ["violations"], **options}
    found = Axe().run(page, options=options).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


def search(page, words):
    """Return the titles that the site's search finds."""
    page.goto((SITE / "search.html").as_uri() + f"?q={words}")
    found = "document.querySelector('#search-results .search-summary')?.innerText.includes('found')"
    page.wait_for_function(found)
    return page.locator("#search-results li > a").all_inner_texts()


def main():
    """Print a JSON object: what was found on each page, and by the search."""
    paths = sorted(SITE.rglob("*.html"))
    if sys.argv[1:]:
        paths = [SITE / name for name in sys.argv[1:]]
    found = {}
    with sync_playwright() as playwright:
        # Root may not use Chromium's sandbox.
        options = {"args": ["--no-sandbox"], "timeout": PATIENCE_MS}
        browser = playwright.chromium.launch(executable_path=CHROMIUM, **options)
        context = browser.new_context(viewport=PHONE)
        for path in paths:
            page = context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            found[path.relative_to(SITE).as_posix()] = look(page, path)
            page.close()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        searched = search(page, "staleness")
        browser.close()
    print(json.dumps({"pages": found, "search": searched}, indent=1))


if __name__ == "__main__":
    main()
