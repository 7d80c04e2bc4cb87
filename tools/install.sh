# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Installs packages that a command of ./run needs and this machine lacks: Debian packages with
# apt-get, Python packages with pip into .venv. Installed packages are not changed: dpkg-query finds
# Debian's, a stamp of the requirements Python's. Sourced by ./run, which sets $root.

# shellcheck disable=SC2154
readonly venv="$root/.venv"
readonly system_python=/usr/bin/python3  # Debian's, even if another one is first on PATH

# The Debian 12 packages of each need.
debian_packages() {
  sed -n "s/^$1: //p" "$root/tools/debian-packages.txt" | grep . || die 2 "unknown need: $1"
}

# The requirements files of each need.
requirements() {
  case $1 in
    build) echo python/requirements-build.txt ;;
    test) echo python/requirements-test.txt ;;
    bench) echo python/requirements-bench.txt ;;
    wheel) echo python/requirements-wheel.txt ;;
  esac
}

# Prints the given Debian packages that are not installed.
missing_packages() {
  local installed name
  installed=$(dpkg-query --show --showformat '${db:Status-Status} ${Package} ${Package}:${Architecture}\n' \
    "$@" 2>/dev/null | sed -n 's/^installed //p' | tr ' ' '\n') || true
  for name in "$@"; do
    grep --quiet --line-regexp --fixed-strings -- "$name" <<<"$installed" || echo "$name"
  done
}

# Prints the stamp for .venv: the requirements and the version of Python.
requirements_stamp() {
  { cat "$root/$1"; "$system_python" --version; } | sha256sum | cut -d ' ' -f 1
}

stamp_file() { echo "$venv/.installed-$(basename "$1" .txt)"; }

# Prints the given requirements files that changed since .venv was filled, or were never installed.
missing_requirements() {
  local file stamp
  for file in "$@"; do
    stamp=$(stamp_file "$file")
    if [[ ! -x $venv/bin/python || ! -f $stamp ||
      $(<"$stamp") != "$(requirements_stamp "$file")" ]]; then
      echo "$file"
    fi
  done
}

# The packages a requirements file names, without its comments.
packages_in() { sed -e 's/[[:space:]]*#.*//' -e '/^$/d' "$@"; }

# as_root COMMAND...: runs a command as root, with sudo if necessary.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}
apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@"; }

# An unreachable third-party source must not prevent installation from the other sources.
apt_update() {
  apt_get -qq update || echo "run: apt-get update had errors; continuing with the existing lists" >&2
}

apt_install() {
  [[ $(id -u) == 0 ]] || command -v sudo >/dev/null ||
    die 3 "this is not root and there is no sudo; as root: apt-get install --no-install-recommends $*"
  apt_update
  { apt_get install --assume-no --no-install-recommends "$@" || true; } 2>/dev/null |
    grep -E '^(Need to get|After this operation)' || true
  mkdir -p "$root/build"
  if ! apt_get -qq -o Dpkg::Use-Pty=0 install --yes --no-install-recommends "$@" \
    </dev/null >"$root/build/apt.log" 2>&1; then
    tail -n 20 "$root/build/apt.log" >&2
    die 3 "apt-get could not install: $* (output: build/apt.log)"
  fi
}

pip_install() {
  local file version
  version=$("$system_python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  [[ -x $venv/bin/python && -d $venv/lib/$version ]] ||
    "$system_python" -m venv --clear --system-site-packages "$venv"
  for file in "$@"; do
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
      --requirement "$root/$file" </dev/null || die 3 "pip could not install what $file names"
    requirements_stamp "$file" >"$(stamp_file "$file")"
  done
}

# On a system without apt nothing is installed; a message says what to install.
no_apt() {
  cat >&2 <<EOF
run: this system has no apt-get, so the packages cannot be installed from here. Needed, by their Debian 12 names:
  $1
Install equivalent packages by hand, then set HALFSCOPE_NO_APT=1, for example: HALFSCOPE_NO_APT=1 ./run build
(the Python packages are then still put into .venv, by $system_python and pip).
EOF
  exit 3
}

# ensure NEED...: prints the missing packages, then installs them.
ensure() {
  local need
  local -a wanted=() files=() packages=() stale=()
  for need in "$@"; do
    read -r -a packages <<<"$(debian_packages "$need")"
    wanted+=("${packages[@]}")
    read -r -a packages <<<"$(requirements "$need")"
    files+=("${packages[@]}")
  done
  packages=()
  if [[ ${HALFSCOPE_NO_APT:-} != 1 ]]; then
    command -v apt-get >/dev/null || no_apt "${wanted[*]}"
    mapfile -t packages < <(missing_packages "${wanted[@]}" | sort --unique)
  fi
  mapfile -t stale < <(missing_requirements "${files[@]}")
  if ((${#packages[@]})); then
    say "to install, ${#packages[@]} Debian packages and what they depend on: ${packages[*]}"
  fi
  if ((${#stale[@]})); then
    say "to install, Python packages into .venv: $(cd "$root" && packages_in "${stale[@]}" | paste -s -d ' ')"
  fi
  ((${#packages[@]})) && apt_install "${packages[@]}"
  ((${#stale[@]})) && pip_install "${stale[@]}"
  return 0
}
