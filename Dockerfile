# The product with exactly the packages of requirements.lock. Build: docker build -t quotewright .
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/quotewright
COPY requirements.lock .
RUN /opt/quotewright/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock
COPY . .
RUN /opt/quotewright/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index .

FROM python:3.13-slim-bookworm
LABEL io.modelcontextprotocol.server.name="io.github.quotewright/quotewright"
# What WeasyPrint loads at run time.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libpango-1.0-0 libpangoft2-1.0-0 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --create-home --home-dir /data quotewright
COPY --from=build /opt/quotewright /opt/quotewright
ENV PATH=/opt/quotewright/bin:$PATH CPQ_HOME=/data/quotes MCP_TRANSPORT=streamable-http MCP_HOST=0.0.0.0 MCP_LOG_FORMAT=json
USER quotewright
WORKDIR /data
VOLUME /data
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
CMD ["cpq", "serve"]
