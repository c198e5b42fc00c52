"""Which variables of the user the processes get, and which values are hidden."""

import re

from launcher.job.statuses import UsageError

# what training needs of the launching shell's environment on another host
TRAINING = re.compile(r"(MXNET|DMLC|PS|OMP|KMP|NCCL)_\w+|LD_LIBRARY_PATH")
# how a secret's name ends: GITHUB_TOKEN, PGPASSWORD, API_KEY; not AUTHOR, MONKEY or MAX_TOKENS
_ENDING = (
    r"(?:token|secret|passw(?:or)?d|passphrase|credentials?|apikey|accesskey|sshpass"
    r"|(?<![^\W_])(?:key|auth)|[_-](?:pass|pwd))[_-]?\d*"
)
SECRET = re.compile(rf"(?i){_ENDING}$")
_ARGUMENT = re.compile(  # NAME=VALUE, NAME: VALUE, --name VALUE
    rf"(?i)((?<![\w-])(?:[\w-]*{_ENDING}[=:]\s*|--?[\w-]*{_ENDING}\s+(?!-)))"
    r"(\"[^\"]*\"|'[^']*'|[^\s\"']+)"
)
SHORTEST = 8  # characters of a value that is hidden wherever it stands: "100" may stand anywhere
_LOGIN = re.compile(r"(\w+://[^/\s:@]*:)[^/\s@]+@")
HIDDEN = "***"


def parse(items, environ):
    """Read `NAME`, `NAME=VALUE` and (as published) `NAME:VALUE`.

    Returns
    -------
    dict
        The value of a bare NAME is the one in `environ`.

    Raises
    ------
    UsageError
        An item has no valid name, or a bare NAME is not set.
    """
    found = {}
    for item in items:
        match = re.fullmatch(r"([A-Za-z_]\w*)(?:[=:](.*))?", item, re.DOTALL | re.ASCII)
        if not match:
            start = re.split("[=:]", item)[0]
            raise UsageError(f"{start!r} is not the name of a variable")
        name, value = match.groups()
        if value is None and name not in environ:
            raise UsageError(f"{name} is not set here; give its value: {name}=…")
        found[name] = environ[name] if value is None else value
    return found


def passed(options, environ):
    """The variables that each role gets.

    Parameters
    ----------
    options : argparse.Namespace
        With env, env_worker, env_server and p3.
    environ : dict
        The launcher's environment. Its variables for `TRAINING` are passed on; a local process
        inherits the others too.

    Returns
    -------
    dict
        role: {name: value}
    """
    common = {name: value for name, value in environ.items() if TRAINING.fullmatch(name)}
    common.update({"DMLC_PS_VAN_TYPE": "p3", "DMLC_PS_WATER_MARK": "10"} if options.p3 else {})
    common.update(parse(options.env, environ))
    return {
        "scheduler": common,
        "server": dict(common, **parse(options.env_server, environ)),
        "worker": dict(common, **parse(options.env_worker, environ)),
    }


def make_mask(command, *environments):
    """Return a function that hides the values of secret-looking variables in a text.

    What the command itself shows is no secret: with KEY=resnet18, `--network resnet18_v1` stays.
    """
    shown = " ".join(mask_words(command))
    values = {
        line
        for environ in environments
        for name, value in environ.items()
        if SECRET.search(name)
        for line in value.splitlines()
        if len(line) >= SHORTEST and line not in shown
    }
    if not values:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))))
    return lambda text: pattern.sub(HIDDEN, text)


def mask_words(words):
    """A command to print: arguments that look like secrets are hidden."""
    shown, hide = [], False
    for word in words:
        if hide and not word.startswith("-"):
            word = HIDDEN
        hide = bool(re.fullmatch(r"--?[\w-]+", word)) and bool(SECRET.search(word))
        word = _ARGUMENT.sub(rf"\1{HIDDEN}", word)
        shown.append(_LOGIN.sub(rf"\1{HIDDEN}@", word))
    return shown


def visible(env):
    """An environment to print: values of secret-looking variables are hidden."""
    return {name: HIDDEN if SECRET.search(name) else value for name, value in env.items()}
