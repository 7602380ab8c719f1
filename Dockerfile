# One image for the console, the workers and one-off commands.
FROM python:3.13-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEDPROC_DATA_DIR=/data
RUN useradd --create-home --uid 10001 medproc \
    && install --directory --owner=medproc --group=medproc --mode=0700 /data /audit-heads
WORKDIR /app
# The extras do nothing until a variable names an identity provider, a bucket, a collector or a tracker.
COPY requirements-extras.lock ./
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements-extras.lock
COPY manage.py pyproject.toml ./
COPY medproc ./medproc
COPY pipeline ./pipeline
COPY observability ./observability
COPY api ./api
COPY gemini_emulator ./gemini_emulator
COPY evaluation ./evaluation
COPY templates ./templates
USER medproc
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "serve", "0.0.0.0:8000"]
