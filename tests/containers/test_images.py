"""What the images of docker/Dockerfile contain, and what they do alone."""

import json

from engine import Engine

# What the gateway's image may add to its base: its program, ONNX Runtime, and certificate authorities.
MAX_ADDED_BYTES = 200e6
GATEWAY, BASE = "pushdown-gateway:local", "debian:bookworm-slim"


def test_the_gateway_adds_little_to_its_base(engine: Engine, images: dict[str, str]) -> None:
    sizes = {name: engine.size_bytes(name) for name in [BASE, *images.values()]}
    for name, size in sizes.items():
        print(f"containers: {name}: {size / 1e6:.0f} MB")
    assert sizes[GATEWAY] - sizes[BASE] <= MAX_ADDED_BYTES


def test_the_gateway_has_no_settings_of_the_build(engine: Engine, images: dict[str, str]) -> None:
    """Registries, proxies and certificate authorities of the building machine are in no image that is shipped."""
    config = json.loads(engine.docker("image", "inspect", "--format", "{{json .Config}}", GATEWAY).stdout)
    assert config["User"] == "10001"
    names = {variable.partition("=")[0] for variable in config["Env"]}
    assert names == {"PATH", "PUSHDOWN_LISTEN", "PUSHDOWN_ADMIN_LISTEN", "ORT_DYLIB_PATH"}
    run = ("run", "--rm", "--network", "none", "--entrypoint")
    assert engine.docker(*run, "test", GATEWAY, "!", "-e", "/etc/machine-certificates.crt").returncode == 0
    history = engine.docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", GATEWAY).stdout
    assert "proxy" not in history.lower()


def test_programs_print_their_versions(engine: Engine, images: dict[str, str]) -> None:
    version = engine.docker("run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", GATEWAY, "--version")
    assert version.stdout.startswith("pushdown-gateway ")
    run = ("run", "--rm", "--read-only", "--network", "none", "--entrypoint")
    assert engine.docker(*run, "pushdown", images["bench"], "--version").stdout.startswith("pushdown ")
