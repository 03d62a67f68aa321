# Stands in for the image of Prometheus: Debian's package, with the entry point and the user of that image.
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends prometheus \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o nobody -g nogroup /prometheus
USER 65534
ENTRYPOINT ["prometheus"]
