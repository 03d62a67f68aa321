# Stands in for the image `python`: Debian's Python, and the certificate authorities of this machine, which a registry behind a proxy
# may need. The context is a folder with the file ca-certificates.crt.
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-pip python3-venv python-is-python3 \
 && rm -rf /var/lib/apt/lists/*
COPY ca-certificates.crt /etc/machine-certificates.crt
ENV PIP_CERT=/etc/machine-certificates.crt \
    SSL_CERT_FILE=/etc/machine-certificates.crt \
    CARGO_HTTP_CAINFO=/etc/machine-certificates.crt
