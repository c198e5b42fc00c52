"""Which rooms of a program import which, read from its sources, against a list of floors."""

import ast


def imported(path):
    """The names of the modules that a file imports, with the line of each."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:  # it may be a room, as in `from gluon_launch import job`
                yield f"{node.module}.{name.name}", node.lineno


def arrows(root):
    """The imports from room to room: {(importing, imported): ["file:line", …]}.

    A room is a folder of `root`, or a file that stands in `root` itself, by its name without .py.
    If `root` is a package, its own name stands in front of the rooms' names in imports.
    """
    package = [root.name] if (root / "__init__.py").exists() else []
    rooms = rooms_of(root)
    found = {}
    for path in sorted(root.rglob("*.py")):
        importing = path.relative_to(root).with_suffix("").parts[0]
        for name, line in imported(path):
            words = name.split(".")
            if words[: len(package)] != package:
                continue
            other = words[len(package)] if len(words) > len(package) else None
            if other in rooms and other != importing:
                where = f"{path.relative_to(root)}:{line}"
                found.setdefault((importing, other), []).append(where)
    return found


def rooms_of(root):
    """The names of the rooms."""
    paths = {path.relative_to(root).with_suffix("").parts[0] for path in root.rglob("*.py")}
    return paths - {"__init__"}


def faults(root, floors):
    """What is wrong, a line each; nothing if all imports go down.

    Parameters
    ----------
    root : pathlib.Path
        The folder of the program.
    floors : list of tuple of str
        The rooms of each floor, the highest floor first. Rooms of one floor may import each other
        in one direction.
    """
    floor_of = {room: floor for floor, rooms in enumerate(floors) for room in rooms}
    found = arrows(root)
    rooms = rooms_of(root)
    lines = [f"on no floor: {room}" for room in sorted(rooms - set(floor_of))]
    lines += [f"no such room: {room}" for room in sorted(set(floor_of) - rooms)]
    for (room, other), places in sorted(found.items()):
        if floor_of.get(room, 0) > floor_of.get(other, len(floors)):
            lines += [f"{place}: {room} imports {other}, which is above it" for place in places]
        if room < other and (other, room) in found:
            lines.append(f"{room} and {other} import each other")
    return lines
