"""What would be done, printed; no host is touched. What only a host can tell stands as `<…>`."""

import shlex

from launcher import job as jobs
from launcher import ssh
from launcher.environment import mask_words, visible


def describe_job(job):
    """The placement, and every command that would be run.

    Returns
    -------
    str
    """
    lines = []
    for host in dict.fromkeys(job.hosts):
        argv, _ = job.supervisor(host)
        here = [str(p) for p in job.processes if p.host == host]
        lines += [f"{host}: {', '.join(here)}", f"  supervisor: {shlex.join(argv)}"]
        if job.options.sync_dst_dir:
            lines.append(f"  copy: {shlex.join(ssh.copy_argv(host, job.source, job.options))}")
    command = shlex.join(mask_words(job.argv))
    alone = len(set(job.hosts)) == 1 and not job.options.interface
    for process in job.processes:
        root, own = (
            "127.0.0.1" if alone else f"<address of {host}>"
            for host in (job.hosts[0], process.host)
        )
        port = job.options.port or "<free port>"
        env = jobs.environment(job, process, root, port, own, None, 1)
        words = " ".join(f"{name}={value}" for name, value in sorted(visible(env).items()))
        lines += [f"{process} on {process.host}, in {job.directory}:", f"  {words}", f"  {command}"]
    return "\n".join(lines)
