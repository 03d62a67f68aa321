# Stands in for the image `python`: Debian's Python. The context is a folder with the certificate authorities of this machine, which the
# registries behind a proxy need; images of docker/ that use this one for their building stages alone do not contain them.
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python-is-python3 python3-pip python3-venv \
 && rm -rf /var/lib/apt/lists/*
COPY ca-certificates.crt /etc/machine-certificates.crt
ENV CARGO_HTTP_CAINFO=/etc/machine-certificates.crt \
    PIP_CERT=/etc/machine-certificates.crt \
    SSL_CERT_FILE=/etc/machine-certificates.crt
