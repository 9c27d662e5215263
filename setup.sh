#!/bin/sh
# Installs what a fresh Debian or Ubuntu machine lacks to build Weft; with --tests also the software Vulkan driver
# that the GPU tests run on. Elsewhere: install Rust 1.95 or newer and a C linker, and for the tests any Vulkan driver.
set -eu
packages=""
command -v cc >/dev/null 2>&1 || packages="build-essential"
if [ "${1:-}" = "--tests" ] && ! ls /usr/share/vulkan/icd.d/lvp_icd* >/dev/null 2>&1; then
    packages="$packages mesa-vulkan-drivers libvulkan1"
fi
if ! command -v cargo >/dev/null 2>&1 && apt-cache show rustup >/dev/null 2>&1; then
    packages="$packages rustup"
fi
if [ -n "$packages" ]; then
    sudo=""
    [ "$(id -u)" = 0 ] || sudo="sudo"
    $sudo apt-get update -qq
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
fi
if ! command -v cargo >/dev/null 2>&1; then
    if command -v rustup >/dev/null 2>&1; then
        rustup default stable
    else
        echo "setup.sh: no Rust toolchain here; install Rust 1.95 or newer (https://rustup.rs) and run this again" >&2
        exit 1
    fi
fi
