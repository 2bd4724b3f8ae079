# Shared by ./dev and what it sources: packages, building, and counting checks.
# shellcheck shell=bash

die() {
    echo "dev: $*" >&2
    exit 1
}

say() { printf '\n== %s\n' "$*"; }

# ---- Debian packages ----

# What each kind of work needs.
packages() {
    case $1 in
    build) echo gcc libc6-dev cmake ninja-build zlib1g-dev libjpeg-dev libopenmpi-dev openmpi-bin ;;
    test) echo python3 ;;
    mpich) echo mpich libmpich-dev ;;
    package) echo g++ pkgconf scdoc man-db ;;
    debian) echo dpkg-dev debhelper lintian fakeroot mpi-default-dev ;;
    clang) echo clang libclang-rt-dev ;;
    cross) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
    emulate) echo libsimde-dev ;;
    mcu) echo python3 gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc-riscv64-unknown-elf \
        picolibc-riscv64-unknown-elf qemu-system-misc ;;
    coverage) echo gcovr ;;
    fashion) echo dataset-fashion-mnist ;;
    onnx) echo libonnx-testdata ;;
    browser) echo python3 chromium chromium-driver fonts-dejavu-core ;;
    peers) echo g++ python3 python3-torch libdnnl-dev libopenblas-pthread-dev libopenblas0-openmp libblis-openmp-dev ;;
    newest) echo python3-venv python3-dev ;;
    text) echo g++ python3 python3-venv ;;
    lint) echo g++ clang clang-format clang-tidy cppcheck shellcheck ;;
    *) die "no packages are listed for \"$1\"" ;;
    esac
}

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# need KIND...: installs what is missing of it, or says how and stops.
need() {
    local kind package missing=()
    command -v dpkg-query >/dev/null || return 0 # not Debian: trust that the tools are there
    for kind in "$@"; do
        for package in $(packages "$kind"); do
            installed "$package" || missing+=("$package")
        done
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null ||
            die "missing packages; run: sudo apt-get install --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    echo "installing ${missing[*]}"
    # somebody else may be installing something: that is waited for
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
    "${apt[@]}" update
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# ---- Building ----

# configure DIRECTORY [CMAKE OPTIONS...]. Whoever comes through this door gets warnings as errors.
configure() {
    local directory=$1
    shift
    cmake -S . -B "$directory" -G Ninja --log-level=WARNING -DMICA_WERROR=ON "$@" >/dev/null
}

# compile DIRECTORY [TARGETS...]
compile() {
    local directory=$1
    shift
    ninja -C "$directory" --quiet "$@"
}

# ---- Counting ----

passed=0
failed=0
skipped=0

# check NAME COMMAND...: one check. Its output is shown only when it fails.
check() {
    local name=$1 log start=$SECONDS
    shift
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok   %-60s %4d s\n' "$name" $((SECONDS - start))
    else
        failed=$((failed + 1))
        sed 's/^/  /' "$log" | tail -n 200
        printf 'FAIL %s\n' "$name"
    fi
    rm -f "$log"
}

# Prints the sum, alone on the last line, and ends.
finish() {
    echo
    [ "$skipped" -eq 0 ] || echo "$skipped skipped: not for this build or processor (see above)"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}
