"""Whether the Java that Spark would start is new enough, answered in one sentence before anything else runs.

The module stands alone (standard library only, nothing of jettison), so that `make` can run it as a file on a bare
interpreter, before the first package is downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

OLDEST_JAVA = 17
"""First Java release that Spark 4 runs on."""

_WAY_OUT = f"install OpenJDK {OLDEST_JAVA} and set JAVA_HOME to its directory"
_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


def java_problem(environ: Mapping[str, str] | None = None) -> str | None:
    """Return `None` when Spark will find a Java that it can run on, else one sentence with the way out.

    Looks where Spark's own launcher looks: `JAVA_HOME` if it is set, even when wrong, and `java` on `PATH` otherwise.

    Parameters
    ----------
    environ
        The environment that Spark would be started with; that of this process by default.

    Examples
    --------
    >>> java_problem({"PATH": ""})
    'Jettison needs Java 17 or newer, found none on PATH: install OpenJDK 17 and set JAVA_HOME to its directory.'
    """
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME", "")
    if home:
        java = shutil.which("java", path=str(Path(home) / "bin"))
        missing = f"JAVA_HOME={home}, which holds no bin/java"
    else:
        java = shutil.which("java", path=environ.get("PATH", ""))
        missing = "none on PATH"
    if java is None:
        return _sentence(missing)
    release = parse_release(_version_text(java))
    if release is None:
        return _sentence(f"{java}, which does not tell its version")
    return None if release >= OLDEST_JAVA else _sentence(f"Java {release} ({java})")


def parse_release(text: str) -> int | None:
    """Return the release number in what `java -version` prints, or `None` if there is none.

    >>> parse_release('openjdk version "17.0.15" 2025-04-15'), parse_release('java version "1.8.0_412"')
    (17, 8)
    """
    match = _VERSION.search(text)
    if match is None:
        return None
    # Up to Java 8 the release is the second number: 1.8 is Java 8.
    return int(match["second"] or 1) if match["first"] == "1" else int(match["first"])


def _version_text(java: str) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout if done.returncode == 0 else ""


def _sentence(found: str) -> str:
    return f"Jettison needs Java {OLDEST_JAVA} or newer, found {found}: {_WAY_OUT}."


def require_java() -> None:
    """Raise `Unsupported` with the way out, unless there is a Java that Spark runs on."""
    from jettison.errors import Unsupported  # only here: this file also runs by itself, before anything is installed

    if problem := java_problem():
        raise Unsupported(problem)


def main() -> int:
    """Print the problem, if there is one, and return the exit code."""
    problem = java_problem()
    if problem is not None:
        print(problem, file=sys.stderr)
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main())
