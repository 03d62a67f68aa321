# Stands in for the image of Prometheus: Debian's package, with that image's entry point, user and `wget`.
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends prometheus wget \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o nobody -g nogroup /prometheus
USER 65534
ENTRYPOINT ["prometheus"]
