# Stands in for the image `rust`. The context is a toolchain of Rust (`rustc --print sysroot`).
FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
COPY bin /usr/local/rust/bin
COPY lib /usr/local/rust/lib
ENV PATH=/usr/local/rust/bin:$PATH \
    CARGO_HOME=/usr/local/cargo
