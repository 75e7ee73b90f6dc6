"""Starts a private PostgreSQL server for one test run, and makes sure that it never outlives that run."""

import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import conninfo, sql

OWNER = "cpq"
PORT = 5432
SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
}
UNSAFE_BUT_QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}

# The keeper owns the server and waits on a pipe from us. A line or the end of the pipe stops the server, so even a test
# run that was killed leaves neither server nor files behind. Arguments: program folder, directory, settings, locale.
KEEPER = """
trap '' PIPE
"$1/initdb" -D "$2/data" -U cpq --auth=trust --encoding=UTF8 --locale="$4" --no-sync >"$2/log" 2>&1 &&
"$1/pg_ctl" -D "$2/data" -l "$2/log" -w -t 300 -o "$3" start >>"$2/log" 2>&1 &&
echo ready && read _ || tail -n 20 "$2/log"
"$1/pg_ctl" -D "$2/data" -m immediate -w stop >/dev/null 2>&1
rm -rf "$2"
"""


@dataclass(frozen=True)
class Cluster:
    """A running server, reached through the unix socket in its directory. Only who started it can stop it."""

    directory: Path
    keeper: subprocess.Popen[str] | None = None

    def url(self, database: str) -> str:
        """The SQLAlchemy address of a database; a busy machine is slow to answer."""
        return f"postgresql+psycopg://{OWNER}@/{database}?host={self.directory}&port={PORT}&connect_timeout=60"

    def describe(self) -> str:
        """What another process passes to `attach`."""
        return str(self.directory)

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create a database, as a copy of the template if one is given; nobody may be connected to the template."""
        # Copying files takes half the time of writing every page to the log, which is what version 15 and later do.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template1")))

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, and disconnect whoever still uses it."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def crash(self) -> None:
        """End the server at once, as a power cut does to its processes, and start it on what its log has."""
        command = [str(find_programs() / "pg_ctl"), "-D", str(self.directory / "data"), "-m", "immediate", "-w"]
        owner = _server_user()
        subprocess.run(
            [*command, "-t", "300", "-l", str(self.directory / "log"), "restart"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            user=owner and owner.pw_uid,
            group=owner and owner.pw_gid,
            extra_groups=owner and [],
        )

    def stop(self) -> None:
        """Stop the server and remove its files. Does nothing when attached, or when already stopped."""
        if self.keeper is None or self.keeper.poll() is not None:
            return
        # A line rather than the end of the pipe: a forked child of ours may still hold the other end.
        self.keeper.communicate("stop\n", timeout=60)

    def _execute(self, statement: sql.Composed) -> None:
        address = conninfo.make_conninfo(host=str(self.directory), port=PORT, user=OWNER, dbname="postgres")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)


def start(*, durable: bool = False) -> Cluster:
    """Start a server with fresh files. Only a durable one waits for the disk, which benches want and tests do not."""
    programs = find_programs()
    # Short, because a socket path has about 100 characters, and open to the server's user. /tmp may be in memory.
    directory = Path(tempfile.mkdtemp(prefix="cpq-pg-", dir="/var/tmp" if durable else "/tmp"))
    settings = SETTINGS | {"unix_socket_directories": str(directory)} | ({} if durable else UNSAFE_BUT_QUICK)
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    locale = "C.UTF-8" if sys.platform == "linux" else "C"
    owner = _server_user()
    if owner is not None:
        os.chown(directory, owner.pw_uid, owner.pw_gid)
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", KEEPER, "keeper", str(programs), str(directory), options, locale],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the test run; the keeper follows when the run has ended.
        user=owner and owner.pw_uid,
        group=owner and owner.pw_gid,
        extra_groups=owner and [],
    )
    assert keeper.stdout is not None
    answer = keeper.stdout.readline()
    if answer != "ready\n":
        raise RuntimeError(f"PostgreSQL in {programs} did not start:\n{answer}{keeper.stdout.read()}")
    return Cluster(directory, keeper)


def attach(description: str) -> Cluster:
    """The cluster that another process started and described."""
    return Cluster(Path(description))


def find_programs() -> Path:
    """The folder with initdb, the newest server first; PG_BIN decides if it is set."""
    named = os.environ.get("PG_BIN")
    for folder in [named] if named else _program_folders():
        if Path(folder, "initdb").exists() and Path(folder, "postgres").exists():
            return Path(folder)
    raise FileNotFoundError("PostgreSQL's initdb was not found: run `.ci/setup postgres`, or set PG_BIN to its folder")


def _program_folders() -> list[str]:
    patterns = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"]
    folders = [folder for pattern in [*patterns, "/usr/local/opt/postgresql*/bin"] for folder in glob.glob(pattern)]
    folders.sort(key=lambda folder: int((re.findall(r"\d+", folder) or ["0"])[-1]), reverse=True)
    if shutil.which("pg_config"):
        folders.append(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
    return [*folders, *os.get_exec_path()]


def _server_user() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root, so root lends it another user."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


if __name__ == "__main__":
    print(find_programs())
