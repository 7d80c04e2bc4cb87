# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# ./run bundle: makes build/bundle, to be copied to a machine with a GPU (docs/gpu.md), and packs it
# into build/bundle.tar.gz. And ./run gpu. Sourced by ./run, which sets $system_python, $wheel_folder.

readonly bundle_folder=build/bundle bundle_most=70000000 bundle_glibc=2.35

bundle() {
  use_what_is_found
  command -v nvcc >/dev/null || die 3 "bundle: nvcc, the CUDA compiler, was not found; it is not in" \
    "Debian's main archive: install NVIDIA's CUDA toolkit and cuDNN 9, and put nvcc on PATH"
  ensure build test bench
  configure bundle build-bundle
  compile build-bundle --target bundle_programs
  say "bundle"
  rm -rf "$bundle_folder"
  cmake --install build-bundle --component bundle --prefix "$bundle_folder" --strip >/dev/null
  bundle_libraries
  bundle_digits
  check_bundle
  bundle_package
  tar -C "${bundle_folder%/*}" -czf "$bundle_folder.tar.gz" "${bundle_folder##*/}"
  say "the bundle is $bundle_folder, $(bundle_bytes) bytes, and $bundle_folder.tar.gz," \
    "$(stat --format %s "$bundle_folder.tar.gz") bytes; bash $bundle_folder/gpu.sh OUT runs it"
}

# Replaces links by files with the names that programs load, since a copy may lose links.
bundle_libraries() {
  local file
  for file in "$bundle_folder"/lib/*; do
    [[ ! -L $file ]] || mv --force "$(readlink --canonicalize "$file")" "$file"
  done
  strip --strip-unneeded "$bundle_folder"/lib/*
}

# scikit-learn's digits, for machines without it.
bundle_digits() {
  local data
  data=$("$system_python" -c 'import os, sklearn
print(os.path.join(os.path.dirname(sklearn.__file__), "datasets/data"))') ||
    die 3 "bundle: no scikit-learn"
  install -D -m 644 -t "$bundle_folder/data/digits" "$data/digits.csv.gz"
}

# The Python package, if ./run wheel has made it: for Python 3.12 and later.
bundle_package() {
  local wheel
  for wheel in "$wheel_folder"/halfscope-*-cp312-abi3-*.whl; do
    [[ -f $wheel ]] || { echo "bundle: without the Python package: ./run wheel makes it" >&2 && continue; }
    "$system_python" -m zipfile -e "$wheel" "$bundle_folder/python"
    rm "$bundle_folder/python/halfscope/bin/halfscope" # bin/halfscope is the program
  done
}

bundle_bytes() { du --summarize --bytes "$bundle_folder" | cut -f 1; }

# Checks that the bundle starts without a driver, cuDNN and cuBLAS, and with an older glibc.
check_bundle() {
  local file linked newest
  for file in "$bundle_folder"/bin/* "$bundle_folder"/lib/*; do
    linked=$(readelf --wide --dynamic "$file" |
      sed -nE 's/.*NEEDED.*\[(lib(cuda|cudnn|cublas|nvrtc)[^]]*)\].*/\1/p')
    [[ -z $linked ]] || die 1 "bundle: $file is linked with what it must load itself: $linked"
    newest=$(readelf --wide --version-info "$file" | grep -oE 'GLIBC_[0-9.]+' |
      sort --version-sort --unique | tail -n 1)
    printf '%s\n' "${newest#GLIBC_}" "$bundle_glibc" | sort --version-sort --check=silent ||
      die 1 "bundle: $file needs $newest; Ubuntu 22.04 has GLIBC_$bundle_glibc"
  done
  (($(bundle_bytes) <= bundle_most)) && return 0
  (cd "$bundle_folder" && find . -type f -printf '%10s %P\n' | sort --numeric-sort --reverse) >&2
  die 1 "bundle: $(bundle_bytes) bytes, above $bundle_most: the sizes are above"
}

# Runs the bundle, which may have been built on another machine.
gpu() {
  if [[ ! -x $bundle_folder/gpu.sh && -f $bundle_folder.tar.gz ]]; then
    tar -C "${bundle_folder%/*}" -xzf "$bundle_folder.tar.gz"
  fi
  if [[ ! -x $bundle_folder/gpu.sh ]]; then
    [[ -e /dev/nvidiactl || -n ${HALFSCOPE_GPU_DRY:-} ]] ||
      die 3 "gpu: this machine has no NVIDIA GPU (no /dev/nvidiactl); ./run bundle, where nvcc is," \
        "makes a folder to carry to one"
    bundle
  fi
  case "$#:${1:-}" in
    0: | 1:--archive-only) set -- "$@" build/gpu ;;
  esac
  bash "$bundle_folder/gpu.sh" "$@"
}
