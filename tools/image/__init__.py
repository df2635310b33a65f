"""The container image without a container engine: a base of Debian packages, built with buildah, run with podman."""
