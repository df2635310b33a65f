# One image for every role: `oraculo up`, `oraculo worker`, `oraculo migrate`, Celery's worker and beat.
#
#   docker build -t oraculo .                          everything
#   docker build -t oraculo-worker --target worker .   workers, their metrics and the clients of all brokers
#
# BASE is any image with Python 3.11 or newer, its module venv, and certificates; docs/deploy/image.md tells more.
ARG BASE=docker.io/library/python:3.13-slim-bookworm

# -- the parts, with the hashes of requirements.lock ------------------------------------------------------------------
FROM ${BASE} AS build
# A pip.conf and a certificate of your own package index, where you have them: they are in no layer.
#   --secret id=pip,src=/etc/pip.conf --secret id=ca,src=/etc/ssl/certs/ca-certificates.crt
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY deploy/image/locked.py deploy/image/install.sh requirements.lock pyproject.toml ./
RUN python3 -m venv /tools && python3 locked.py pyproject.toml requirements.lock --package hatchling > hatchling.lock
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/ca.pem \
    if [ -s /run/ca.pem ]; then export PIP_CERT=/run/ca.pem; fi \
    && /tools/bin/pip install --require-hashes --only-binary :all: -r hatchling.lock
COPY README.md LICENSE ./
COPY src src
RUN /tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .
COPY --chmod=0444 deploy/image/healthcheck.py /out/healthcheck.py
RUN mkdir -p /data /reports && chown 1000:1000 /data /reports

FROM build AS build-all
ARG EXTRAS=all
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/ca.pem \
    sh install.sh "${EXTRAS}"

FROM build AS build-worker
ARG WORKER_EXTRAS=server,workers,fast,rabbitmq,redis,nats,kafka
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca,target=/run/ca.pem \
    sh install.sh "${WORKER_EXTRAS}"

# -- what all images share: no shell is needed, nothing but /data, /reports and /tmp is written to -------------------------------
FROM ${BASE} AS runtime
ARG VERSION=0.0.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="Oráculo" \
      org.opencontainers.image.description="Durable orchestration for workers and brokers people already run" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
# Beyond loopback a key is needed, so without ORACULO_API_KEY `oraculo up` says so and ends.
ENV PATH=/opt/oraculo/bin:/usr/local/bin:/usr/bin:/bin \
    HOME=/tmp \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ORACULO_HOST=0.0.0.0
COPY --from=build --chown=1000:1000 /data /data
COPY --from=build --chown=1000:1000 /reports /reports
WORKDIR /data
VOLUME /data
USER 1000:1000
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/oraculo/bin/oraculo"]

FROM runtime AS worker
COPY --from=build-worker /opt/oraculo /opt/oraculo
CMD ["worker", "oraculo.collectors.all:worker"]

FROM runtime AS oraculo
COPY --from=build-all /opt/oraculo /opt/oraculo
COPY --from=build /out/healthcheck.py /opt/oraculo/healthcheck.py
EXPOSE 8000 9090
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/opt/oraculo/bin/python", "/opt/oraculo/healthcheck.py"]
CMD ["up"]
