# Two images of one program: `docker build -t dtq .` is the API, `docker build -t dtq-worker --target worker .` a worker.
# docs/containers.md says how they are run. No `syntax` directive: building needs no image but the base.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# a virtualenv at the same path in both stages, because its scripts name it
RUN python -m venv --without-pip /opt/dtq
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m pip --python /opt/dtq install ".[fast]"

FROM ${BASE} AS runtime
COPY --from=build /opt/dtq /opt/dtq
# no bytecode is written at run time: the file system may be read-only, and pip has compiled everything
ENV PATH=/opt/dtq/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# modules of DTQ_TASK_MODULES are found here
WORKDIR /app
# a number, so that Kubernetes' runAsNonRoot can tell; it needs no entry in /etc/passwd
USER 10001:10001
STOPSIGNAL SIGTERM
# exec form: dtq is process 1 and gets the signal itself, with no shell between
ENTRYPOINT ["dtq"]

FROM runtime AS worker
ENV DTQ_WORKER_METRICS_PORT=9100
EXPOSE 9100
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['DTQ_WORKER_METRICS_PORT'] + '/health', timeout=4)"]
CMD ["worker", "run"]

FROM runtime AS api
ENV DTQ_API_PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['DTQ_API_PORT'] + '/health', timeout=4)"]
CMD ["api", "run"]
