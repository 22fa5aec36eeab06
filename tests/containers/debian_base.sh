#!/usr/bin/env bash
# Makes a base image for the Dockerfile out of Debian's own packages, where no registry can be reached:
#   sudo bash tests/containers/debian_base.sh NAME ; DTQ_TEST_PYTHON_IMAGE=NAME tox -e containers
# Needs debootstrap and root. The machine's own certificates are trusted inside, so that pip works behind a proxy.
set -euo pipefail
name=$1
root=${2:-}
if [ -z "$root" ]; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase --include=ca-certificates,python3.13,python3.13-venv,python3-pip trixie "$root" >&2
fi
ln -sf python3.13 "$root/usr/bin/python"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
tar -C "$root" -c . | docker import --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
  --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$name"
