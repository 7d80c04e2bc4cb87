# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# ./run fresh: runs a command of ./run on a clone of a commit, in a minimal root file system of
# Debian 12 made by debootstrap, in which nothing else is installed. Sourced by ./run, which sets
# $root.

readonly fresh_cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/halfscope
readonly fresh_release=bookworm
# Results of a command that are copied back into build/fresh.
readonly -a fresh_results=(build/demo build/bench.json build/ctest.xml build/pytest.xml build/arm
  build/wheel)

# fresh [--commit C] [COMMAND...]
fresh() {
  local commit=HEAD status=0 try
  needs_root fresh
  if [[ ${1:-} == --commit ]]; then
    (($# >= 2)) || die 2 "fresh: --commit needs a commit, for example: ./run fresh --commit HEAD~1 demo"
    commit=$2
    shift 2
  fi
  (($#)) || set -- demo
  commit=$(git rev-parse --verify --quiet "$commit^{commit}") || die 2 "fresh: git has no commit '$commit'"
  [[ -z $(git status --porcelain) ]] || echo "fresh: uncommitted changes are not included" >&2
  ensure fresh
  bare_root "$fresh_release"
  try=$(mktemp --directory "$fresh_cache/try.XXXXXX")
  # shellcheck disable=SC2064  # the path as it is now
  trap "rm -r --one-file-system '$try'" EXIT
  cp --archive --reflink=auto "$bare/." "$try"
  git clone --quiet --no-checkout "$root" "$try/halfscope"
  git -C "$try/halfscope" checkout --quiet --detach "$commit"
  say "fresh: ./run $* of ${commit:0:10} in a bare Debian 12"
  in_root "$try" /halfscope/run "$@" || status=$?
  bring_back "$try/halfscope"
  say "fresh: ./run $* ended with $status"
  return "$status"
}

# needs_root COMMAND: ends the script unless root runs it: only root can make a root file system.
needs_root() {
  [[ $(id -u) == 0 ]] || { echo "$1: not run, needs root" >&2; exit 3; }
}

# arm [--commit C]: makes the root file system as fresh does; arm --here builds and tests inside it.
arm() {
  case $* in
    --here) arm_here ;;
    '' | '--commit '*) needs_root arm && fresh "$@" arm --here ;;
    *) die 2 "arm: found '$*', expected --commit C, --here or nothing" ;;
  esac
}

# Builds lib and its tests with the cross compiler and runs them under qemu-user. Installing
# Debian's arm64 libraries changes the system, so this needs a root file system of its own.
arm_here() {
  as_root dpkg --add-architecture arm64
  ensure arm
  rm -rf build/arm
  configure arm build-arm
  compile build-arm
  say "arm: ctest under $(qemu-aarch64 --version | head -n 1)"
  ctest --preset arm --output-junit "$root/build/arm/ctest.xml" || true
  say "arm: tests ran"
  python3 tools/count_tests.py build/arm/ctest.xml
}

# bare_root RELEASE: sets $bare, a minimal root file system of a Debian release with git, in the
# cache folder. It is made again if the machine's package sources or settings have changed.
bare_root() {
  local sources mirror stamp making
  sources=$(debian_sources)
  [[ -n $sources ]] || { apt_update && sources=$(debian_sources); }
  sources=${sources//$fresh_release/$1}
  mirror=$(sed -n "s/^deb \(.*\) $1 main\$/\1/p" <<<"$sources" | head -n 1)
  [[ -n $mirror ]] ||
    die 1 "fresh: apt has no source of Debian 12 ($fresh_release main); found: ${sources:-none of Debian}"
  stamp=$({ echo "$sources"; acquire_settings; declare -f bare_root; } | sha256sum)
  bare=$fresh_cache/bare-${stamp:0:16}
  [[ ! -d $bare ]] || return 0
  say "fresh: a bare $1 into $bare (a minute, once)"
  mkdir -p "$fresh_cache/debs"
  find "$fresh_cache" -maxdepth 1 -name 'bare-*' -mtime +30 -exec rm -r --one-file-system {} +
  making=$(mktemp --directory "$fresh_cache/making.XXXXXX")
  debootstrap --variant=minbase --include=git --cache-dir="$fresh_cache/debs" \
    "$1" "$making" "$mirror" </dev/null >"$fresh_cache/debootstrap.log" 2>&1 || {
    tail -n 20 "$fresh_cache/debootstrap.log" >&2
    rm -r --one-file-system "$making"
    die 1 "fresh: debootstrap could not make a root (output: $fresh_cache/debootstrap.log)"
  }
  printf '%s\n' "$sources" >"$making/etc/apt/sources.list"
  acquire_settings >"$making/etc/apt/apt.conf.d/90machine"
  rm -rf "$making"/var/cache/apt/archives/*.deb
  chmod 755 "$making"
  touch "$making"
  mv "$making" "$bare"
}

# Prints the machine's package sources of Debian 12, one per line. acquire_settings prints apt's
# settings.
debian_sources() {
  # shellcheck disable=SC2016  # apt expands them
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    sed -n "s/^Debian \(.* $fresh_release.*\)/deb \1/p" | sort --unique
}
acquire_settings() { apt-config dump Acquire; }

# in_root ROOT COMMAND...: runs a command in the root file system with the machine's network,
# certificates and settings of pip, but nothing else of it. Mounts end with the namespace. Packages
# of Debian and pip stay in the cache folder for the next root; ccache's files are shared with the
# machine.
in_root() {
  local inside=$1 file name
  local -a keep=()
  shift
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt \
    /usr/local/share/ca-certificates; do
    [[ ! -e $file ]] || { mkdir -p "$inside${file%/*}" && cp --recursive --dereference "$file" "$inside${file%/*}"; }
  done
  for name in $(compgen -e); do
    case $name in
      PIP_* | HALFSCOPE_WERROR | CCACHE_DISABLE | CI | TERM | *_proxy | *_PROXY | *_CERT | *_CA_BUNDLE | \
        *_CERT_FILE | *_CAINFO) keep+=("$name=${!name}") ;;
    esac
  done
  local compiled=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ccache}
  mkdir -p "$fresh_cache"/{archives/partial,pip} "$compiled"
  # shellcheck disable=SC2016  # expanded inside
  unshare --mount --pid --fork --kill-child bash -euc "$(declare -f mount_root)"'; mount_root "$1" "$2" "$3"
    shift 3; exec chroot "$@"' - "$inside" "$fresh_cache" "$compiled" "$inside" \
    /usr/bin/env --ignore-environment HOME=/root LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${keep[@]}" "$@" </dev/null
}

mount_root() {
  local node
  mount -t proc proc "$1/proc"
  mount -t tmpfs -o mode=755 tmpfs "$1/dev"
  mkdir "$1/dev/shm" "$1/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
  ln -s pts/ptmx "$1/dev/ptmx"
  for node in null zero full random urandom tty; do
    touch "$1/dev/$node"
    mount --bind "/dev/$node" "$1/dev/$node"
  done
  ln -s /proc/self/fd "$1/dev/fd"
  mkdir -p "$1/root/.cache/pip" "$1/root/.cache/ccache"
  mount --bind "$2/archives" "$1/var/cache/apt/archives"
  mount --bind "$2/pip" "$1/root/.cache/pip"
  mount --bind "$3" "$1/root/.cache/ccache"
}

bring_back() {
  local name
  rm -rf "$root/build/fresh"
  mkdir -p "$root/build/fresh"
  for name in "${fresh_results[@]}"; do
    [[ ! -e $1/$name ]] || cp --recursive "$1/$name" "$root/build/fresh"
  done
}
