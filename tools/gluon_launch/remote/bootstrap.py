"""The text of the modules that run on a host, as it is sent there over standard input."""

import pathlib

REMOTE = pathlib.Path(__file__).parent
# In the order in which they import each other.
MODULES = ("protocol", "host", "tree", "request", "orphans", "processes", "package", "supervisor")

# What the Python on the host reads first: one line that carries the modules and runs them.
_MODULES = {name: (REMOTE / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}
BOOTSTRAP = f"""
import sys, types
sys.argv[0] = "mxnet-launch-supervisor"
for name, source in {_MODULES!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name + ".py", "exec"), module.__dict__)
sys.modules["supervisor"].Supervisor().work()
"""
LOADER = f"launch {BOOTSTRAP!r}\n"
# raw: a buffer would take some of the orders behind that line, and the supervisor never see them
REMOTE_PYTHON = (
    'import sys;b=sys.stdin.buffer.raw.readline();b[:7]==b"launch " or '
    'sys.exit("what was sent first has not arrived");exec(eval(b[7:]))'
)
