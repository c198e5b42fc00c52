"""Which values are hidden, as they look like secrets, on the screen and in what is kept."""

import re

from gluon_launch.job.variables import env_items

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
ABOUT_HIDDEN = "# *** stands for a part of the command that is not shown: put it in."


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
    """Return a command to print: arguments that look like secrets are hidden."""
    shown, hide = [], False
    for word in words:
        if hide and not word.startswith("-"):
            word = HIDDEN
        hide = bool(re.fullmatch(r"--?[\w-]+", word)) and bool(SECRET.search(word))
        word = _ARGUMENT.sub(rf"\1{HIDDEN}", word)
        shown.append(_LOGIN.sub(rf"\1{HIDDEN}@", word))
    return shown


def is_secret(name, value):
    """Return whether a variable looks like a secret: by its name, or a login or argument in it."""
    return bool(SECRET.search(name)) or mask_words([value]) != [value]


def untold(job, role):
    """Return a role's variables whose values are hidden: secrets, and those given by name alone."""
    is_bare = {
        re.split("[=:]", item)[0]: not re.search("[=:]", item)
        for item in env_items(job.options)[role]
    }
    return {n for n, value in job.env[role].items() if is_bare.get(n) or is_secret(n, value)}


def visible(job):
    """Return the environment of each role, to record: without what is not told."""
    return {
        role: {n: HIDDEN if n in untold(job, role) else value for n, value in env.items()}
        for role, env in job.env.items()
    }
