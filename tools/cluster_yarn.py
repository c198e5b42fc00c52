"""Hadoop YARN on the hosts of `cluster.py`: the ResourceManager on d1, a NodeManager on all.

No Debian package has it. Maven gets Hadoop's jars, once, into a folder of the user's cache; a list
of their SHA-256 stands beside this file. Programs are `java` with a class of theirs.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from cluster_batch import PROGRAMS, start_daemon

VERSION = "3.4.2"
NEEDED = {"java": "default-jre-headless", "mvn": "maven"}
READY = """python3 -c "
import json, urllib.request
nodes = json.load(urllib.request.urlopen('http://d1:8088/ws/v1/cluster/nodes'))['nodes']
print(*[node['nodeHostName'] for node in nodes['node'] if node['state'] == 'RUNNING'], sep='\\n')
" 2> /dev/null"""
SUMS = pathlib.Path(__file__).with_name("cluster_yarn.sha256")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
PARTS = (
    "server-resourcemanager",
    "server-nodemanager",
    "server-timelineservice",  # the ResourceManager wants its classes
    "applications-distributedshell",
)
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>cluster</groupId><artifactId>cluster</artifactId><version>1</version>
<dependencies>{}</dependencies>
</project>
"""
PART = """
<dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-yarn-{}</artifactId>
<version>{}</version></dependency>"""
HADOOP = "/run/hadoop"
YARN = f"""\
#!/bin/sh
# What `yarn` of a distribution of Hadoop does, as far as it is needed here.
jars=%s
export HADOOP_CONF_DIR={HADOOP} JAVA_HOME=${{JAVA_HOME:-%s}}
classes="{HADOOP}:$jars/*"
what=$1
shift
case $what in
classpath) echo "$classes"; exit ;;
jar) classes="$classes:$1"; shift; class=$1; shift ;;
resourcemanager) class=org.apache.hadoop.yarn.server.resourcemanager.ResourceManager ;;
nodemanager) class=org.apache.hadoop.yarn.server.nodemanager.NodeManager ;;
node) class=org.apache.hadoop.yarn.client.cli.NodeCLI ;;
application | container)
    class=org.apache.hadoop.yarn.client.cli.ApplicationCLI
    set -- "$what" "$@"
    ;;
*) echo "yarn: $what is not written" >&2; exit 1 ;;
esac
# Quick to start, small, and without files in /tmp; DistributedShell's own Java inherits it.
export JAVA_TOOL_OPTIONS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 \\
    -XX:-UsePerfData -Djava.io.tmpdir={HADOOP}/tmp"
exec "$JAVA_HOME/bin/java" -Xmx128m --add-opens=java.base/java.lang=ALL-UNNAMED \\
    -cp "$classes" $class "$@"
"""
LOG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
SITE = {
    "core-site.xml": {"fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{HADOOP}/tmp"},
    "yarn-site.xml": {
        "yarn.resourcemanager.hostname": "d1",
        "yarn.nodemanager.hostname": "{host}",
        "yarn.nodemanager.local-dirs": f"{HADOOP}/local",
        "yarn.nodemanager.log-dirs": f"{HADOOP}/logs",
        "yarn.node-attribute.fs-store.root-dir": f"{HADOOP}/attributes",
        "yarn.application.classpath": f"{HADOOP},{{jars}}/*",
        # only asked for; a host has room for a worker and a server of 1 GB each, not for two
        "yarn.nodemanager.resource.memory-mb": "3072",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.scheduler.minimum-allocation-mb": "128",
        # quick for trying out
        "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,JAVA_TOOL_OPTIONS,HADOOP_CONF_DIR",
        # containers find the same programs as those who log in
        "yarn.nodemanager.admin-env": "PATH={path}",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        "yarn.am.liveness-monitor.expiry-interval-ms": "20000",
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": "1000",
        "yarn.client.failover-proxy-provider": "org.apache.hadoop.yarn.client."
        "DefaultNoHARMFailoverProxyProvider",
    },
    "capacity-scheduler.xml": {
        "yarn.scheduler.capacity.root.queues": "default,urgent",
        "yarn.scheduler.capacity.root.default.capacity": "50",
        "yarn.scheduler.capacity.root.default.maximum-capacity": "100",
        "yarn.scheduler.capacity.root.urgent.capacity": "50",
        "yarn.scheduler.capacity.root.urgent.maximum-capacity": "100",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        "yarn.scheduler.capacity.maximum-applications": "100",
        "yarn.scheduler.capacity.root.default.user-limit-factor": "2",
        "yarn.scheduler.capacity.root.urgent.user-limit-factor": "2",
    },
}


def sums():
    """Return the SHA-256 of each jar, by its name."""
    lines = SUMS.read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in map(str.split, lines)}


def wrong(folder):
    """Return the names of jars that a folder lacks, or whose content is wrong."""
    return [
        name
        for name, digest in sums().items()
        if not (folder / name).is_file()
        or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]


def jars():
    """Return the folder of Hadoop's jars, downloaded if need be."""
    folder = CACHE / f"mxnet-cluster/hadoop-{VERSION}"
    if not wrong(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        new = pathlib.Path(scratch)
        (new / "pom.xml").write_text(
            POM.format("".join(PART.format(part, VERSION) for part in PARTS)), encoding="utf-8"
        )
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime",
             f"-DoutputDirectory={new}/jars"],
            cwd=new, check=True,
        )  # fmt: skip
        bad = wrong(new / "jars")
        if bad:
            raise OSError(f"these jars are not what they should be: {', '.join(bad)}")
        shutil.rmtree(folder, ignore_errors=True)
        (new / "jars").rename(folder)
    return folder


def write_files(d1, addresses):
    """Link the jars into the cluster's folder: a cache in /home is not seen on the hosts."""
    (d1 / "jars").mkdir()
    source = jars()
    for name in sums():
        try:
            os.link(source / name, d1 / "jars" / name)
        except OSError:  # on another disk
            shutil.copy(source / name, d1 / "jars" / name)


def site(values):
    """Return a file of Hadoop's configuration."""
    lines = [f"<property><name>{n}</name><value>{v}</value></property>" for n, v in values.items()]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""])


def start(folder, name):
    """Start the daemons of one host, inside it."""
    path = f"{pathlib.Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    known = {"host": name, "jars": folder.parent / "d1" / "jars", "path": path}
    os.makedirs(f"{HADOOP}/tmp")
    for file, values in SITE.items():
        text = site({key: value.format(**known) for key, value in values.items()})
        pathlib.Path(HADOOP, file).write_text(text, encoding="utf-8")
    pathlib.Path(HADOOP, "log4j.properties").write_text(LOG, encoding="utf-8")
    program = pathlib.Path(PROGRAMS, "yarn")
    program.parent.mkdir(exist_ok=True)
    java_home = pathlib.Path(shutil.which("java")).resolve().parents[1]
    program.write_text(YARN % (known["jars"], java_home), encoding="utf-8")
    program.chmod(0o755)
    if name == "d1":
        start_daemon(folder, str(program), "resourcemanager", log="resourcemanager")
    start_daemon(folder, str(program), "nodemanager", log="nodemanager")
