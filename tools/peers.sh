# ./dev bench --peers, and --peers known: builds the peers' programs and runs Mica and them in turns
# (docs/benchmarks.md, "Peers").
# shellcheck shell=bash

peers_out=build/bench/peers

# newer OUTPUT SOURCE...: whether the output must be made.
must_make() {
    local output=$1 source
    shift
    for source in "$@"; do
        [ "$output" -nt "$source" ] || return 0
    done
    return 1
}

# A program of bench/peers: peer_program NAME "SOURCES" FLAGS...
peer_program() {
    local name=$1 sources=$2 headers=(bench/peers/*.hpp host/heap.[ch])
    shift 2
    # shellcheck disable=SC2086
    must_make "$peers_out/$name" $sources bench/peers/peer.cpp "${headers[@]}" tools/peers.sh || return 0
    # shellcheck disable=SC2086
    g++ -std=c++17 -O2 -Wall -Wextra -I. $sources bench/peers/peer.cpp "$peers_out/heap.o" -o "$peers_out/$name" "$@"
}

# A library's files are named one by one: what libblas.so stands for is each system's own choice.
peer_blas() {
    local name=$1 folder=$2 library=$3
    shift 3
    peer_program "$name" bench/peers/cblas.cpp "$@" -isystem "/usr/include/$(gcc -print-multiarch)/$folder" \
        -L"/usr/lib/$(gcc -print-multiarch)/$folder" -Wl,-rpath,"/usr/lib/$(gcc -print-multiarch)/$folder" -l"$library"
}

# What counts the heap calls of Python's libraries.
build_counter() {
    mkdir -p "$peers_out"
    if must_make "$peers_out/heap.so" host/heap.[ch]; then
        gcc -std=c11 -D_GNU_SOURCE -O2 -fPIC -I. -c host/heap.c -o "$peers_out/heap.o"
        gcc -shared "$peers_out/heap.o" -o "$peers_out/heap.so"
    fi
}

build_peers() {
    build_counter
    peer_blas openblas openblas-pthread openblas
    peer_blas blis blis-openmp blis -DPEER_BLIS
    peer_program onednn "$(echo bench/peers/onednn*.cpp)" -fopenmp -ldnnl
}

# ---- PyPI's newest ----

newest=build/newest
newest_python=build/torch/bin/python

# PyTorch, in an environment of its own, or in that of ./dev bench --peers onnx.
newest_torch() {
    if [ ! -x "$newest_python" ] && build/onnx/python/bin/python -c 'import torch' 2>/dev/null; then
        newest_python=build/onnx/python/bin/python
        return
    fi
    [ -x "$newest_python" ] || /usr/bin/python3 -m venv build/torch
    "$newest_python" -c 'import torch' 2>/dev/null || "$newest_python" -m pip install --quiet torch
}

# newest_files NAME PACKAGE...: the include and lib folders of these packages in build/newest/NAME. Nothing of them is
# installed, nor what they need for other processors.
newest_files() {
    local folder=$newest/$1 wheel part
    shift
    [ ! -e "$folder/whole" ] || return 0
    rm -rf "$folder"
    mkdir -p "$folder/wheels" "$folder/include" "$folder/lib"
    echo "fetching $* from PyPI" >&2
    "$newest_python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --dest "$folder/wheels" "$@" >"$newest/pip.log" 2>&1 || {
        echo "$* cannot be had: $(tail -n 1 "$newest/pip.log")" >&2
        return 1
    }
    for wheel in "$folder"/wheels/*.whl; do
        "$newest_python" -m zipfile -e "$wheel" "$folder/wheels/unpacked"
    done
    for part in include lib; do
        for wheel in "$folder"/wheels/unpacked/*.data/data "$folder"/wheels/unpacked/scipy_openblas64; do
            [ ! -d "$wheel/$part" ] || cp -r "$wheel/$part/." "$folder/$part/"
        done
    done
    rm -rf "$folder/wheels"
    touch "$folder/whole"
}

# newest_program NAME "SOURCES" LIBRARIES...: a peer with the files in build/newest/NAME. One that does not compile is
# left out, and said.
newest_program() {
    local name=$1 sources=$2 folder=$PWD/$newest/$1
    shift 2
    peer_program "$name-newest" "$sources" -isystem "$folder/include" -L"$folder/lib" -Wl,-rpath,"$folder/lib" "$@" ||
        echo "$name of PyPI does not compile: it is left out" >&2
}

# oneDNN's newest package, onednn, has it for SYCL alone, whose processor is a device of OpenCL; the last for OpenMP is
# this one. MKL's threads are those of GNU's OpenMP.
build_newest() {
    mkdir -p "$newest"
    ! newest_files openblas scipy-openblas64 ||
        newest_program openblas bench/peers/cblas.cpp -DPEER_SCIPY -l:libscipy_openblas64_.so
    ! newest_files mkl mkl mkl-include || newest_program mkl bench/peers/cblas.cpp -DPEER_MKL -fopenmp \
        -l:libmkl_intel_lp64.so.3 -l:libmkl_gnu_thread.so.3 -l:libmkl_core.so.3
    ! newest_files onednn onednn-cpu-gomp onednn-devel-cpu-gomp ||
        newest_program onednn "$(echo bench/peers/onednn*.cpp)" -fopenmp -ldnnl
}

run_peers() {
    need build peers
    configure build && compile build mica-tool
    build_peers
    case " $* " in *' --peers=newest '*) need newest && newest_torch && build_newest ;; esac
    exec /usr/bin/python3 -B bench/peers/peers.py "$@"
}

# ./dev bench --peers known: the Python of ./dev bench --peers onnx has all that it takes.
bench_known() {
    # shellcheck source=tools/onnx.sh
    source tools/onnx.sh
    need build text newest # torch.compile calls a compiler
    configure build && compile build mica-tool
    build_counter
    mkdir -p "$text_out"
    onnx_python
    exec "$python" -P -B bench/peers/known.py "$@"
}
