"""How long things are: a report that `make lint` prints. No test asks for a number."""

import ast
import json
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
LONG_FILE, LONG_FUNCTION = 250, 60  # lines from which they are listed


def functions_of(path):
    """Yield the name and the number of lines of each function in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def row_of(notebook):
    """Return the words of a notebook, and the lines of its longest and its median code cell."""
    cells = json.loads(notebook.read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    lengths = [len(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return len(" ".join(texts).split()), max(lengths), median(lengths)


if __name__ == "__main__":
    lesson = dict(functions_of(ROOT / "cifar10_dist/cifar10_dist.py"))
    print(f"train: {lesson['train']} lines")
    for path in sorted((ROOT / "cifar10_dist").rglob("*.py")):
        lines = len(path.read_text().splitlines())
        long = [f"{name} {size}" for name, size in functions_of(path) if size > LONG_FUNCTION]
        if lines > LONG_FILE or long:
            print(
                f"{path.relative_to(ROOT)}: {lines} lines; {', '.join(long) or 'no long function'}"
            )
    print(f"{'notebook':<45} words  longest cell  median")
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        words, longest, middle = row_of(notebook)
        print(f"{notebook.name:<45} {words:>5}  {longest:>12}  {middle:>6g}")
