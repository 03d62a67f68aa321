"""docs/TROUBLESHOOTING.md: each command prints what the page says, with a real gateway. Python is in python/tests/gateway."""

import contextlib
import glob
import http.server
import os
import pathlib
import re
import shutil
import socket
import threading
import urllib.error
import urllib.request

import onnx
import pytest

from process import Process
from stores import ROOT, gateway_binary, start_gateway
from store_relay import Server
from transcripts import Addresses, check_log, differs, environment_of, photos_of_the_page, run_console, sections

PAGE = (ROOT / "docs/TROUBLESHOOTING.md").read_text()
SECTIONS = [section for section in sections(PAGE) if "python" not in section.fences]
PRELUDE = re.search(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]
PHOTOS = ROOT / "testkit/fixtures/photos"
STORE_KEYS = {"access_key": "dev", "secret_key": "devsecret"}
KEYS = """[[key]]
access-key = "PDTRAINER0000001"
secret = "trainer-secret-01"
upstream = "gateway"

[[key.grant]]
bucket = "photos"
prefix = "train/"
allow = ["list", "read"]
pipelines = true
"""
GATEWAY, ADMIN, STORE, PROXY = (f"127.0.0.1:{port}" for port in (9900, 9901, 9000, 8080))


def unchanged(passed: bytes) -> bytes:
    return passed


def relay(target, change_request=unchanged, change_answer=unchanged) -> Server:
    """A server that relays connections to the address that `target` returns, and changes what passes."""

    def pump(source, sink, change):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(change(data))
            sink.shutdown(socket.SHUT_WR)

    def handle(client):
        host, port = target().split(":")
        with socket.create_connection((host, int(port))) as server:
            back = threading.Thread(target=pump, args=(server, client, change_answer), daemon=True)
            back.start()
            pump(client, server, change_request)
            back.join()

    return Server(handle)


class ComparesFirst(http.server.BaseHTTPRequestHandler):
    """A store that compares ETags before it checks signatures, in front of one that does not."""

    protocol_version = "HTTP/1.1"
    store = ""
    etag = None

    def do_GET(self):
        kind = type(self)
        condition = self.headers.get("If-None-Match")
        if condition is not None and condition == kind.etag and ".store-check-" not in self.path:
            self.answer(304, b"", condition)
            return
        request = urllib.request.Request(f"http://{kind.store}{self.path}", headers={"Host": self.headers["Host"]})
        try:
            with urllib.request.urlopen(request) as answer:
                kind.etag = answer.headers["ETag"]
                self.answer(200, answer.read(), kind.etag)
        except urllib.error.HTTPError as refusal:
            self.answer(refusal.code, refusal.read(), None)

    def answer(self, status, body, etag):
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if status != 304:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class RefusesFirst(http.server.BaseHTTPRequestHandler):
    """A store that refuses the first GET of a photo, as a policy does that refuses the gateway, which asks for it first."""

    protocol_version = "HTTP/1.1"
    store = ""
    has_refused = False

    def do_GET(self):
        kind = type(self)
        if self.path.startswith("/photos/train/cats/2.jpg?") and not kind.has_refused:
            kind.has_refused = True
            self.answer(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        with urllib.request.urlopen(urllib.request.Request(f"http://{kind.store}{self.path}", headers=headers)) as answer:
            self.answer(200, answer.read())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def write_models(folder: pathlib.Path) -> None:
    """Writes a model that computes the mean of each channel, and a damaged copy of it."""
    folder.mkdir()
    shapes = {"x": [None, 3, 64, 64], "y": [None, 3, 1, 1]}
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items())
    mean = onnx.helper.make_node("GlobalAveragePool", ["x"], ["y"])
    graph = onnx.helper.make_graph([mean], "means", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (folder / "means.onnx").write_bytes(model.SerializeToString())
    (folder / "cut.onnx").write_bytes(model.SerializeToString()[:-20])


def older_library(answer: bytes) -> bytes:
    """An answer in which the gateway's ONNX Runtime has an older version, of the same length."""
    return re.sub(rb"onnxruntime=1\.\d\d\.\d", b"onnxruntime=1.22.2", answer)


def library() -> str:
    """ONNX Runtime's library in the Python environment of the tests."""
    (found,) = glob.glob(str(pathlib.Path(onnx.__file__).parents[1] / "onnxruntime/capi/libonnxruntime.so.*"))
    return found


class World:
    """What a section of the page needs: its folder, servers and environment."""

    def __init__(self, folder: pathlib.Path, running: contextlib.ExitStack):
        self.folder, self.running = folder, running
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "new").mkdir()
        for name in ("jpeg_rgb.jpg", "jpeg_420.jpg"):
            shutil.copy(PHOTOS / name, self.work / "new")
        self.environment = environment_of(folder, gateway_binary().parent, ROOT / ".venv/bin")
        self.addresses = Addresses({})
        self.gateway: Process | None = None

    def start(self, name: str = "gateway", environment: dict[str, str] | None = None, **settings: object) -> None:
        """Starts a gateway, which takes the addresses of the page."""
        if settings.keys().isdisjoint(("upstream", "allow_store")):
            settings |= {"store": self.folder / "store", **STORE_KEYS}
            photos_of_the_page(self.folder / "store", PHOTOS)
        self.gateway, found = start_gateway(self.folder / name, environment, **settings)
        self.running.callback(self.gateway.stop)
        names = {"listen": GATEWAY, "admin": ADMIN, "store": STORE}
        self.addresses.used |= {page: found[key] for key, page in names.items() if found.get(key)}

    def serve(self, server: Server, address: str) -> None:
        """Gives a running server an address of the page."""
        self.running.callback(server.stop)
        self.addresses.used[address] = server.address

    def used(self, address: str) -> str:
        """The address that stands for one of the page."""
        return self.addresses.used[address]

    def set_up(self, settings: str) -> None:
        """Follows the comment of a section."""
        kind, *arguments = settings.split() or ["gateway"]
        names = [flag.removeprefix("--").replace("-", "_") for flag in arguments[::2]]
        flags = dict(zip(names, arguments[1::2], strict=True))
        match kind:
            case "gateway":
                self.start(**flags)
            case "no-gateway":
                pass
            case "gateway-without-store":
                self.start(allow_store="http://127.0.0.1:1")
            case "no-store":
                self.start(upstream="http://127.0.0.1:1")
            case "models":
                self.start_with_models(library())
            case "models-without-library":
                self.start_with_models("libonnxruntime.so")
            case "models-of-older-library":
                self.start_with_models(library())
                target = self.used(GATEWAY)
                self.serve(relay(lambda: target, change_answer=older_library), GATEWAY)
            case "proxy":
                self.start()
                self.serve(self.proxy(), PROXY)
            case "resign":
                self.start_in_resign_mode(**flags)
            case "resign-behind-proxy":
                proxy = self.proxy()
                self.serve(proxy, PROXY)
                self.start_in_resign_mode(resign_public_hosts=proxy.address)
            case "unsafe-store":
                self.start()
                self.replace_store(ComparesFirst)
            case "refusing-store":
                self.start("store-gateway")
                self.replace_store(RefusesFirst)
                self.start(allow_store=f"http://{self.used(STORE)}")
            case _:
                raise ValueError(f"unknown set-up: {settings}")

    def replace_store(self, kind: type[http.server.BaseHTTPRequestHandler]) -> None:
        """Puts a server in front of the store, at the store's address of the page."""
        handler = type("Store", (kind,), {"store": self.used(STORE)})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.running.callback(server.server_close)
        self.running.callback(server.shutdown)
        self.addresses.used[STORE] = f"127.0.0.1:{server.server_port}"

    def proxy(self) -> Server:
        """A proxy in front of the gateway that sends another Host than it receives."""

        def change_host(request: bytes) -> bytes:
            return re.sub(rb"(?i)(\r\nhost: )[^\r]*", rb"\g<1>" + self.used(GATEWAY).encode(), request)

        return relay(lambda: self.used(GATEWAY), change_host)

    def start_with_models(self, runtime: str) -> None:
        """Starts a gateway with a model and a damaged one, and waits until it has checked them."""
        self.environment["ORT_DYLIB_PATH"] = library()
        folder = self.folder / "models"
        write_models(folder)
        self.start(environment=dict(os.environ) | {"ORT_DYLIB_PATH": runtime}, models=folder)
        checked = ('name="cut"', 'name="means"')
        self.gateway.wait_until("models are checked", lambda: all(name in self.log() for name in checked))

    def start_in_resign_mode(self, secret: str = STORE_KEYS["secret_key"], **settings: object) -> None:
        """Starts a store, and a gateway with a keys file and one identity at the store."""
        self.start("store-gateway")
        keys = self.work / "keys.toml"
        keys.touch(0o600)
        keys.write_text(KEYS)
        identity = {"AWS_ACCESS_KEY_ID": STORE_KEYS["access_key"], "AWS_SECRET_ACCESS_KEY": secret}
        environment = self.environment | identity
        self.start(environment=environment, upstream=f"http://{self.used(STORE)}", resign_keys=keys, **settings)

    def log(self) -> str:
        return self.gateway.log.read_text()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_commands_print_what_the_page_has(section, tmp_path):
    with contextlib.ExitStack() as running:
        world = World(tmp_path, running)
        world.set_up(section.settings)
        blocks = [text for fence, text in section.blocks if fence == "console"]
        printed = run_console(PRELUDE, blocks, world.work, world.environment, world.addresses)
        wrong = [f"$ {command}{reason}" for command, expected, found in printed if (reason := differs(expected, found))]
        assert not wrong, "\n".join(wrong)
        for fence, text in section.blocks:
            if fence == "log":
                check_log(text, world.log, world.addresses)


def test_the_page_has_many_symptoms_and_each_is_checked():
    symptoms = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    assert len(symptoms) >= 15 and len(symptoms) == len(set(symptoms))
    assert {section.title for section in sections(PAGE)} >= set(symptoms)
