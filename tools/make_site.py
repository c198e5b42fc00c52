#!/usr/bin/env python3
"""Turn the notebooks, README, RESULTS, docs/ and the programs' --help into pages: ``make site``.

The pages are put together in build/site-source, in the folders of the project, and Sphinx makes
build/site of them. No notebook is run: the site shows what the committed ones put out.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / "docs" / "site"  # the front page, and pages that only the site has
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
PYTHON = ROOT / ".venv" / "bin" / "python"
PAGES = ("README.md", "RESULTS.md", "docs/*.md", "notebooks/*.md", "notebooks/*.ipynb")
PAGES += ("benchmarks/*.md", "CHANGELOG.md", ".github/CONTRIBUTING.md", ".github/SECURITY.md")
DOT_GITHUB, GITHUB = ".github/", "github/"  # web servers do not hand out hidden folders
LESSON = "cifar10_dist/*.py"  # shown even where no page leads to it
HELP = {
    "cifar10_dist": ("cifar10_dist/cifar10_dist.py", "--help"),
    "launch": ("tools/launch.py", "--help-all"),
    "cluster": ("tools/cluster.py", "--help"),
}
BESIDE = {  # a page that the site alone has, the notebook that leads to it, what the link says
    "step": (
        "07-measure-scaling",
        "A step to play with",
        "Hosts, cable, servers: move a slider, and see what the others wait for.",
    ),
    "pushpull": (
        "03-share-state-with-the-kvstore",
        "Push and pull to watch",
        "One message after the other. Guess first; then break it.",
    ),
    "problems": (
        "07-measure-scaling",
        "Problems to calculate",
        "With the numbers of real machines, and folded answers.",
    ),
}
ALSO = {  # other words for what a page explains: the search finds them
    "03-share-state-with-the-kvstore": "parameter server, all-reduce, stale gradients",
    "06-survive-failures": "fault tolerance, hang, deadlock, resume",
    "07-measure-scaling": "straggler (a slow worker), strong and weak scaling, bottleneck",
    "08-feed-the-devices": "data loading, input pipeline, prefetch",
    "09-train-in-mixed-precision": "AMP, fp16, bf16, half precision",
    "troubleshooting": "deadlock, freeze, stuck job (here: hang), straggler (here: slow worker)",
    "launching": "mpirun, torchrun, horovodrun, rendezvous",
}
TRY, TRY_TREE = "<!-- to try out -->", "<!-- to try out: tree -->"  # in the front page
ORPHAN = "---\norphan: true\n---\n"  # a page that no other comes before or after
FILES = "<!-- files -->"  # in the page of source files
ARCHIVE = "lesson.tar.gz"  # the project, to download from the site
GET_IT = f"""\
Download <a href="{ARCHIVE}">{ARCHIVE}</a> (1 MB). On Linux (x86-64), in its folder, type:"""
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
SHOWN = re.compile(r"(\S+, from line \d+):\s*")  # what helpers.show prints above source code
LANGUAGES = {".py": "python", ".sbatch": "bash", ".qsub": "bash", ".sh": "bash"}


def main(argv=None):
    """Make the site that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--url", default="", help="address that the site will have, for the page of a wrong address"
    )
    args = parser.parse_args(argv)
    if not PYTHON.exists():
        print("make site: .venv is missing, which knows the flags: make setup", file=sys.stderr)
        return 2
    start = time.time()
    print("Making the pages (about half a minute) ...", flush=True)
    put_together()
    has_archive = bool(commit())
    environ = dict(os.environ, SITE_URL=args.url, SITE_COMMIT=commit())
    environ["SITE_ARCHIVE"] = ARCHIVE if has_archive else ""
    words = ["-b", "html", "-c", str(OWN), "-W", "--keep-going", "-q", "-j", "auto"]
    words += ["-d", str(ROOT / "build" / "site-doctrees"), str(SOURCE), str(SITE)]
    shutil.rmtree(SITE, ignore_errors=True)
    status = subprocess.run([sys.executable, "-m", "sphinx", *words], env=environ).returncode
    if status:
        return status
    for program in sorted(OWN.glob("*_data.py")):
        data = SITE / "_static" / f"{program.stem}.js"
        subprocess.run([sys.executable, program, data], check=True)
    write_downloads()
    if has_archive:
        words = ["archive", "--format=tar.gz", "--prefix=lesson/", "-o", str(SITE / ARCHIVE)]
        subprocess.run(["git", "-C", str(ROOT), *words, "HEAD"], check=True)
    count, front = len(list(SITE.rglob("*.html"))), (SITE / "index.html").as_uri()
    print(f"Made {count} pages in {time.time() - start:.0f} s: {front}")
    return 0


def commit():
    """Return the commit and its date, or nothing outside a git repository or without git."""
    if not shutil.which("git"):
        return ""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=commit %h of %cs"]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace"
    ).stdout.strip()


def put_together():
    """Write all pages, and what they lead to, into an empty build/site-source."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    wanted = set(ROOT.glob(LESSON))
    for path in pages:
        place = SOURCE / path.relative_to(ROOT).as_posix().replace(DOT_GITHUB, GITHUB)
        place.parent.mkdir(parents=True, exist_ok=True)
        write = write_notebook if path.suffix == ".ipynb" else write_page
        write(path, place, wanted, set(pages))
    for path in sorted(OWN.glob("*.md")):  # they stand at the top, and link from there
        text = relink(path.read_text(encoding="utf-8"), ROOT / path.name, wanted, set(pages))
        (SOURCE / path.name).write_text(text, encoding="utf-8")
    write_beside()
    for folder in sorted(path for path in wanted if path.is_dir()):
        wanted |= set(folder.glob("*.*"))
    for path in sorted(wanted):
        write_source(path, wanted)
    write_list(wanted)
    for name, words in HELP.items():
        write_help(name, *words)


def write_beside():
    """Link the pages of BESIDE from the front page."""
    there = {name: words for name, (_, *words) in BESIDE.items() if (OWN / f"{name}.md").exists()}
    if there:
        cards = "\n".join(card_of(name, *words) for name, words in there.items())
        names = "\n".join(there)
        tree = f"```{{toctree}}\n:hidden:\n:caption: To try out\n\n{names}\n```"
        front = SOURCE / "index.md"
        text = front.read_text(encoding="utf-8").replace(TRY_TREE, tree)
        cards = f'```{{raw}} html\n<div class="cards">\n{cards}\n</div>\n```'
        text = text.replace(TRY, f"## To try out\n\n{cards}")
        text = text.replace("<!-- archive -->", GET_IT if commit() else "")
        front.write_text(text, encoding="utf-8")


def card_of(name, title, words):
    """Return the card on the front page that leads to a page: its picture, title and words."""
    picture = (OWN / "cards" / f"{name}.svg").read_text(encoding="utf-8").strip()
    return f'<a href="{name}.html">{picture}<b>{title}</b> <span>{words}</span></a>'


def write_page(path, place, wanted, pages):
    """Write a Markdown page. The front page has what README has: it is not in the list of pages."""
    text = relink(path.read_text(encoding="utf-8"), path, wanted, pages)
    orphan = ORPHAN if path == ROOT / "README.md" else ""
    place.write_text(orphan + text + also(path), encoding="utf-8")


def also(path):
    """Return the line of other words for what a page explains; nothing if it has none."""
    return f"\n\n*Also called: {ALSO[path.stem]}.*\n" if path.stem in ALSO else ""


def write_notebook(path, place, wanted, pages):
    """Write a notebook with its committed outputs, its number, and the ways to it and on."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    texts = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    for cell in texts:
        cell["source"] = relink("".join(cell["source"]), path, wanted, pages)
    notebook["cells"] = join_setups(notebook["cells"])
    for cell in notebook["cells"]:
        join_streams(cell.get("outputs", []))
        label_files(cell.get("outputs", []))
    title, rest = texts[0]["source"].split("\n", 1)
    numbered = title.replace("# ", f"# {path.stem[:2]} ", 1)
    texts[0]["source"] = f"{numbered}\n\n{ways_to(path.name)}\n{rest}"
    links = [
        f"- [{title}](../{name}.md): {words[0].lower()}{words[1:]}\n"
        for name, (notebook_name, title, words) in BESIDE.items()
        if path.stem == notebook_name and (OWN / f"{name}.md").exists()
    ]
    if links:
        texts[0]["source"] += f"\n\n```{{seealso}}\n{''.join(links)}```\n"
    texts[-1]["source"] += also(path)
    place.write_text(json.dumps(notebook, ensure_ascii=False), encoding="utf-8")


def join_setups(cells):
    """Make one cell of folded cells that follow each other: each would have a bar of its own."""
    joined = []
    for cell in cells:
        is_folded = "hide-input" in cell["metadata"].get("tags", [])
        if is_folded and joined and "hide-input" in joined[-1]["metadata"].get("tags", []):
            joined[-1]["source"] = "\n\n".join("".join(c["source"]) for c in (joined[-1], cell))
            joined[-1]["outputs"] += cell["outputs"]
        else:
            joined.append(cell)
    return joined


def join_streams(outputs):
    """Make one output of what was printed in several pieces, but only if nothing came between."""
    joined = []
    for output in outputs:
        if "text" in output and joined and joined[-1].get("name") == output["name"]:
            joined[-1]["text"] = "".join([*joined[-1]["text"], *output["text"]])
        else:
            joined.append(output)
    outputs[:] = joined


def label_files(outputs):
    """Make of each line that tells where shown code is written the label of that code."""
    for line, code in zip(outputs[:], outputs[1:]):
        words = SHOWN.fullmatch("".join(line.get("text", "")))
        if words and "text/html" in code.get("data", {}):
            page = "".join(code["data"]["text/html"])
            code["data"]["text/html"] = f'<div class="file">{words[1]}</div>{page}'
            outputs.remove(line)


def ways_to(name):
    """Return the buttons below the title of a notebook."""
    repo = os.environ.get("SITE_REPO", "").rstrip("/")
    source = f"{repo}/blob/HEAD/notebooks/{name}" if repo else "../source.html#notebooks"
    return (
        f'<p class="ways"><a href="{name}" download title="without its outputs">Download</a>'
        f' <a href="../index.html#two-commands">Open locally: <code>make jupyter</code></a>'
        f' <a href="{source}">Source</a></p>\n'
    )


def write_downloads():
    """Put the notebooks beside their pages, without what they put out."""
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell.update(outputs=[], execution_count=None)
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        (SITE / "notebooks" / path.name).write_text(text, encoding="utf-8")


def relink(text, path, wanted, pages):
    """Return text whose links to files lead to the pages of these files, which are noted."""

    def lead(match):
        target = (path.parent / match[0]).resolve()
        if target.parent == OWN and target.suffix == ".md":
            return os.path.relpath(ROOT / target.name, path.parent).replace(os.sep, "/")
        if "://" in match[0] or target in pages or not target.exists():
            return match[0].replace(DOT_GITHUB, GITHUB)
        if target.suffix in (".svg", ".csv"):
            copy = SOURCE / target.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, copy)
            return match[0]
        wanted.add(target)
        return f"{match[0]}/index.md" if target.is_dir() else f"{match[0]}.md"

    return LINK.sub(lead, text)


def write_source(path, wanted):
    """Write the page of a file, or of a folder: a list of its files."""
    name = path.relative_to(ROOT).as_posix()
    place = SOURCE / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        place.mkdir(exist_ok=True)
        files = sorted(file.name for file in wanted if file.parent == path)
        listed = "".join(f"- [`{file}`]({file}.md)\n" for file in files)
        (place / "index.md").write_text(f"{ORPHAN}# `{name}/`\n\n{listed}", encoding="utf-8")
        return
    shutil.copy(path, place)
    language = LANGUAGES.get(path.suffix, "text")
    shown = f"```{{literalinclude}} {path.name}\n:language: {language}\n```\n"
    place.with_name(f"{path.name}.md").write_text(
        f"{ORPHAN}# `{name}`\n\n{shown}", encoding="utf-8"
    )


def write_list(wanted):
    """Write the list of all files that have a page, folder by folder."""
    names = sorted(path.relative_to(ROOT).as_posix() for path in wanted if path.is_file())
    folders = {}
    for name in names:
        folders.setdefault(name.partition("/")[0] if "/" in name else "the rest", []).append(name)
    folders["the rest"] = folders.pop("the rest", [])  # the last
    listed = "\n".join(
        f"## {folder}\n\n" + "".join(f"- [`{name}`]({name}.md)\n" for name in inside)
        for folder, inside in folders.items()
        if inside
    )
    page = SOURCE / "source.md"
    page.write_text(page.read_text(encoding="utf-8").replace(FILES, listed), encoding="utf-8")


def write_help(name, program, option):
    """Write what a program says about itself."""
    words = [PYTHON, ROOT / program, option]
    environ = dict(os.environ, COLUMNS="88")
    text = subprocess.run(
        words, env=environ, check=True, capture_output=True, encoding="utf-8", errors="replace"
    ).stdout
    (SOURCE / "help").mkdir(exist_ok=True)
    page = f"# Flags of `{Path(program).name}`\n\n````text\n{text}````\n"
    (SOURCE / "help" / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
