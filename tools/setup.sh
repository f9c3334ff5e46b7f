#!/usr/bin/env bash
# Installs the Debian packages that a goal of the Makefile needs; quick and silent when they are there.
#   tools/setup.sh           what building and testing need
#   tools/setup.sh look      also a headless browser, for `make look`
#   tools/setup.sh lint      also what `make lint` and `make format` need
#   tools/setup.sh bench     also what `make bench` needs
#   tools/setup.sh fuzz      also what `make fuzz` needs
#   tools/setup.sh references  also what tools/fetch-references needs
# Works on Debian 12 and 13. Not as root: prints the command to run and exits 1. Nothing is downloaded but packages.
set -euo pipefail

packages=(
  cmake ninja-build g++ make git pkg-config ccache
  libcli11-dev libfmt-dev libspdlog-dev libyaml-cpp-dev nlohmann-json3-dev libsimdjson-dev
  libzstd-dev zlib1g-dev libxxhash-dev libssl-dev libpcre2-dev libutf8proc-dev libgtest-dev libjs-chart.js
)
case "${1:-build}" in
  build) ;;
  look) packages+=(chromium fonts-dejavu-core) ;;
  lint) packages+=(clang-format cppcheck) ;;
  fuzz) packages+=(clang libclang-rt-14-dev) ;;
  bench) packages+=(libbenchmark-dev) ;;
  references) packages+=(python3 python3-pip) ;;
  *) echo "usage: tools/setup.sh [build|look|lint|bench|references]" >&2; exit 64 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; what is needed, by its Debian names: ${packages[*]}" >&2
  echo "setup: going on with what is installed"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $(id -u) -ne 0 ]]; then
  echo "setup: ${#missing[@]} packages are missing and only root can install them; run this, then try again:" >&2
  echo "  sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
