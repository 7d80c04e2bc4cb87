# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2164,SC2030,SC2031
# ./run wheel: makes the Python package in build/wheel, as source and as wheels that only need glibc
# and libgcc_s. One wheel is for Debian 12's Python 3.11, one for 3.12 and later (stable ABI, with
# the headers of Debian 13). If the CUDA compiler is found, they contain GPU code: CUDA's runtime is
# linked in, and the driver is loaded when a GPU is first used. Sourced by ./run, which sets $root
# and $venv.

readonly wheel_folder=$root/build/wheel wheel_debian=$root/build/wheel-debian
readonly wheel_source=$root/build/wheel-source wheel_others=$root/build/wheel-others
readonly wheel_platform=manylinux_2_34_x86_64 wheel_most=20000000

wheel() {
  ensure build wheel
  use_what_is_found
  rm -rf "$wheel_folder"
  mkdir -p "$wheel_folder"
  wheel_libraries
  say "wheel: the source package"
  wheel_log sdist "$venv/bin/pyproject-build" --no-isolation --sdist --outdir "$wheel_folder" "$root"
  wheel_build
  wheel_check
  wheel_try bookworm
  wheel_try trixie
  wheel_beside
  say "the wheels are $(echo build/wheel/*.whl)"
}

# Runs apt-get for source packages of Debian 12 and packages of Debian 13, with its own package
# lists.
wheel_apt() {
  apt-get -qq -o Dir::Etc::SourceList="$wheel_debian/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$wheel_debian/lists" -o APT::Sandbox::User=root "$@" </dev/null
}

# Makes the headers of Debian 13's Python, and static libraries with position-independent code from
# the sources of Debian 12. They are kept until these functions change.
wheel_libraries() {
  local stamp archive
  stamp=$(declare -f wheel_libraries wheel_compile wheel_cmake | sha256sum)
  [[ ! -f $wheel_debian/stamp || $(<"$wheel_debian/stamp") != "$stamp" ]] || return 0
  say "wheel: static libraries and the headers of Debian 13's Python, into build/wheel-debian"
  archive=$(debian_sources | sed -n "s/^deb \(.*\) $fresh_release main$/\1/p" | head -n 1)
  [[ -n $archive ]] || die 1 "wheel: apt has no source of Debian 12 ($fresh_release main)"
  rm -rf "$wheel_debian"
  mkdir -p "$wheel_debian"/{lists/partial,lib,python,build}
  printf '%s\n' "deb-src $archive $fresh_release main" "deb $archive trixie main" >"$wheel_debian/sources.list"
  (
    cd "$wheel_debian"
    export CCACHE_BASEDIR=$wheel_debian
    wheel_apt update
    wheel_apt download libpython3.13-dev
    dpkg-deb --extract libpython3.13-dev_*.deb python
    wheel_apt source fmtlib libzip libzstd highway onetbb protobuf zlib bzip2 libisal
    wheel_compile
  ) >"$wheel_debian/log" 2>&1 &
  wait $! || {
    tail -n 20 "$wheel_debian/log" >&2
    die 1 "wheel: no static libraries (output: build/wheel-debian/log)"
  }
  echo "$stamp" >"$wheel_debian/stamp"
}

wheel_compile() {
  local library
  # Makes the allocator's proxy a static library. function_replacement.cpp is only for Windows.
  sed -i '/^if (NOT BUILD_SHARED_LIBS)/,/^endif/d; /function_replacement.cpp/d' \
    onetbb-*/src/tbbmalloc_proxy/CMakeLists.txt
  wheel_cmake fmtlib-* fmt -DFMT_TEST=OFF -DFMT_DOC=OFF
  # Without encryption, which Halfscope does not read. arc4random would need glibc 2.36.
  wheel_cmake libzip-* zip -DENABLE_{COMMONCRYPTO,GNUTLS,MBEDTLS,OPENSSL}=OFF -DHAVE_ARC4RANDOM=OFF
  wheel_cmake libzstd-*/build/cmake libzstd_static -DZSTD_BUILD_{PROGRAMS,SHARED}=OFF
  wheel_cmake highway-* hwy -DBUILD_TESTING=OFF -DHWY_ENABLE_{EXAMPLES,TESTS}=OFF
  wheel_cmake onetbb-* tbbmalloc_proxy,tbb -DTBB_{TEST,STRICT}=OFF  # its warnings, of g++ 12, are errors
  wheel_cmake protobuf-* libprotobuf -Dprotobuf_BUILD_{TESTS,PROTOC_BINARIES}=OFF
  (cd zlib-* && CFLAGS="-O3 -fPIC" ./configure --static && make libz.a)
  make -C bzip2-* CFLAGS="-O2 -fPIC -D_FILE_OFFSET_BITS=64" libbz2.a
  make -C libisal-* -f Makefile.unx units=crc lib
  find build zlib-*/libz.a bzip2-*/libbz2.a -name 'lib*.a' -exec mv -t lib {} +
  mv libisal-*/bin/isa-l.a lib/libisal.a
  for library in lzma pugixml; do  # Debian's static libraries are position-independent
    ln -s "$(g++ -print-file-name=lib$library.a)" lib
  done
}

# wheel_cmake FOLDER TARGET[,TARGET] [CMAKE-ARGUMENT...]
wheel_cmake() {
  cmake -G Ninja -S "$1" -B "build/${1%%-*}" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON "${@:3}"
  # shellcheck disable=SC2086  # several targets
  cmake --build "build/${1%%-*}" --target ${2//,/ }
}

# Builds both wheels from the source package in one build folder, so the second compiles only the
# module.
wheel_build() {
  local wheel include=$wheel_debian/python/usr/include
  say "wheel: for Python 3.11 and for 3.12 and later"
  rm -rf "$wheel_source"
  mkdir "$wheel_source"
  tar --extract --file "$wheel_folder"/halfscope-*.tar.gz --strip-components 1 --directory "$wheel_source"
  (
    cd "$wheel_source"
    export CCACHE_BASEDIR=$PWD CC=cc CXX=c++  # as in ./run build, to share its ccache
    wheel_pip 3.11
    wheel_pip 3.12 --config-settings "cmake.define.HALFSCOPE_STABLE_ABI=$include/python3.13;$include" \
      --config-settings "build.targets=_halfscope;halfscope"
  )
  "$venv/bin/wheel" tags --remove --python-tag cp312 --abi-tag abi3 "$wheel_source"/3.12/*.whl >/dev/null
  for wheel in "$wheel_source"/3.1?/*.whl; do
    PATH=$venv/bin:$PATH wheel_log repair \
      auditwheel repair --plat "$wheel_platform" --wheel-dir "$wheel_folder" "$wheel"
  done
}

# wheel_log NAME COMMAND...: writes the command's output to a file, and shows its end if it fails.
wheel_log() {
  "${@:2}" >>"$wheel_folder/$1.log" 2>&1 || {
    tail -n 20 "$wheel_folder/$1.log" >&2
    die 1 "wheel: $1 failed (output: build/wheel/$1.log)"
  }
}

# wheel_pip NAME [OPTION...]
wheel_pip() {
  wheel_log "$1" "$venv/bin/python" -m pip wheel --no-build-isolation --no-deps --wheel-dir "$1" \
    --config-settings build-dir=build \
    --config-settings "cmake.define.HALFSCOPE_WERROR=${HALFSCOPE_WERROR:-OFF}" \
    --config-settings cmake.define.HALFSCOPE_CUDA=AUTO \
    --config-settings "cmake.define.HALFSCOPE_STATIC_LIBRARIES=$wheel_debian/lib" "${@:2}" .
}

# Checks that wheels are small and that their module exports only Python's init function.
wheel_check() {
  local file module
  for file in "$wheel_folder"/*.whl; do
    (($(stat --format %s "$file") < wheel_most)) || die 1 "wheel: $file has $wheel_most bytes or more"
    module=$(mktemp)
    unzip -p "$file" 'halfscope/_halfscope.*.so' >"$module"
    [[ $(nm --dynamic --defined-only --format=just-symbols "$module") == PyInit__halfscope ]] ||
      die 1 "wheel: the module of $file exports more than PyInit__halfscope"
    rm "$module"
    echo "$(basename "$file"): $(stat --format %s "$file") bytes; exports PyInit__halfscope alone"
  done
}

# wheel_try RELEASE: tests the wheel in a root file system that has only Python.
wheel_try() {
  [[ $(id -u) == 0 ]] || { echo "wheel: not tried in a bare $1, needs root" >&2; return 0; }
  ensure fresh
  bare_root "$1"
  say "wheel: in a bare $1"
  (
    try=$(mktemp --directory "$fresh_cache/try.XXXXXX")
    # shellcheck disable=SC2064  # the path as it is now
    trap "rm -r --one-file-system '$try'" EXIT
    cp --archive --reflink=auto "$bare/." "$try"
    mkdir "$try/wheel"
    cp --recursive "$wheel_folder"/*.whl README.md tools/try_wheel.py data/digits-cnn/log "$try/wheel"
    in_root "$try" bash -euc 'apt-get -qq update
      DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends --yes python3-venv >/dev/null 2>&1
      python3 -m venv /venv
      /venv/bin/pip install --quiet --no-index --find-links /wheel halfscope
      cd /wheel
      /venv/bin/python try_wheel.py package
      /venv/bin/pip install --quiet --find-links /wheel "halfscope[tables]"
      /venv/bin/python try_wheel.py readme'
  )
}

# Tests the wheel in one process with TensorFlow of the package index and PyTorch of Debian.
wheel_beside() {
  local python=$wheel_others/bin/python
  say "wheel: beside TensorFlow and PyTorch"
  [[ -x $python ]] || "$system_python" -m venv --system-site-packages "$wheel_others"
  "$python" -m pip install --quiet 'numpy<2' tensorflow-cpu
  "$python" -m pip install --quiet --no-index --force-reinstall --find-links "$wheel_folder" halfscope
  TF_CPP_MIN_LOG_LEVEL=3 "$python" "$root/tools/try_wheel.py" beside  # hides notes on the CPU
}
