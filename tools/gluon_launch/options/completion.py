"""What lets a shell complete the options: `eval "$(gluon-launch --completion)"` in bash or zsh."""

from gluon_launch.job.values import given
from gluon_launch.options.flags import FLAGS
from gluon_launch.starting.ways import WAYS

SCRIPT = """\
if [ -n "${{ZSH_VERSION-}}" ]; then autoload -U +X compinit bashcompinit; compinit; bashcompinit; fi
_gluon_launch() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  case $before in
{choices}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "{names}" -- "$word"));;
    *) COMPREPLY=($(compgen -f -- "$word"));;
  esac
}}
complete -o filenames -F _gluon_launch gluon-launch launch.py
"""


def script():
    """Return the script, with the names of all options and the values of those that have few."""
    flags = [flag for flags in FLAGS.values() for flag in flags if flag.names != "command"]
    values = {flag.names: flag.takes for flag in flags if isinstance(flag.takes, tuple)}
    values["--launcher"] = tuple(WAYS)
    choices = [
        f'    {names.replace(" ", "|")}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"));'
        " return;;"
        for names, words in values.items()
    ]
    free = [f.names for f in flags if f.takes not in (bool, given) and f.names not in values]
    free = "|".join(name for names in free for name in names.split())
    choices.append(f"    {free}) return;;")  # a number: nothing to offer
    names = " ".join(name for flag in flags for name in flag.names.split())
    return SCRIPT.format(choices="\n".join(choices), names=f"{names} --help --help-all --version")
