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

# PyPI's newest PyTorch, in an environment of its own.
newest_torch() {
    [ -x build/torch/bin/python ] || /usr/bin/python3 -m venv build/torch
    build/torch/bin/python -c 'import torch' 2>/dev/null || build/torch/bin/python -m pip install --quiet torch
}

run_peers() {
    need build peers
    configure build && compile build mica-tool
    build_peers
    case " $* " in *' --peers=newest '*) need newest && newest_torch ;; esac
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
