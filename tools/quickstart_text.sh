#!/usr/bin/env bash
# Fetches about 35 MB of English text for the quickstart: documentation packages of Debian, unpacked but not installed.
# usage: tools/quickstart_text.sh DIRECTORY   -> DIRECTORY/text/NAME/..., DIRECTORY/SOURCES (packages, versions, one digest of all bytes)
# Does nothing when DIRECTORY/SOURCES is there. The packages move with security updates, so the digest of today is not that of next year.
set -euo pipefail

data=$1
if [[ -e $data/SOURCES ]]; then
  echo "text: already there (delete $data to fetch it again)"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$data"

candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p' | grep -v '(none)' || true; }
# Metapackages lead to the version that this Debian has: python3-doc to python3.11-doc on 12, to python3.13-doc on 13.
behind() { apt-cache depends "$1" 2>/dev/null | sed -n "s/^ *Depends: \($2\)\$/\1/p" | head -n 1; }

if [[ -z $(candidate perl-doc) ]]; then
  if [[ $(id -u) -ne 0 ]]; then
    echo "text: apt does not know its packages yet; run this, then try again: sudo apt-get update   (or use your own text: make quickstart TEXT=dir)" >&2
    exit 1
  fi
  apt-get update -qq
fi

# Downloads PACKAGE and copies its files that match the patterns (of find -path; ! negates the next one) to text/NAME.
sources=()
collect() {
  local name=$1 package=$2 version
  shift 2
  version=$([[ -z $package ]] || candidate "$package")
  if [[ -z $version ]]; then
    echo "text: $name: no such package here, left out"
    return
  fi
  mkdir -p "$work/$name" "$work/text/$name"
  echo "\$ apt-get download $package"
  if ! (cd "$work/$name" && apt-get download -qq -o APT::Sandbox::User=root "$package"); then
    echo "text: $package could not be downloaded, left out"
    return
  fi
  dpkg-deb -x "$work/$name"/*.deb "$work/$name/unpacked"
  (cd "$work/$name/unpacked" && find usr/share -type f "$@" -exec cp --parents -t "$work/text/$name" {} +)
  sources+=("$name $package $version $(find "$work/text/$name" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print NR, "files", bytes, "bytes" }')")
}

collect perl perl-doc -path '*/pod/*.pod' ! -name 'perl5*delta.pod'
collect python "$(behind python3-doc 'python3\.[0-9]*-doc')" -path '*/_sources/*' -name '*.txt' ! -path '*/whatsnew/*'
collect git git-doc '(' -name '*.txt' -o -name '*.adoc' ')'
collect postgresql "$(behind postgresql-doc 'postgresql-doc-[0-9]*')" -path '*/html/*.html'
collect anarchism anarchism -path '*/markdown/*'

if [[ ${#sources[@]} -lt 4 ]]; then
  echo "text: only ${#sources[@]} of 5 sources could be had, 4 are needed; use your own text: make quickstart TEXT=dir" >&2
  exit 1
fi

digest=$(cd "$work/text" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
rm -rf "$data/text"
mv "$work/text" "$data/text"
printf '%s\n' "${sources[@]}" "corpus sha256 $digest" >"$data/SOURCES.new"
mv "$data/SOURCES.new" "$data/SOURCES"
cat "$data/SOURCES"
