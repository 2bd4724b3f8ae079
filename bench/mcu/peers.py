"""Other ways to a net on a microcontroller: those that can be fetched as a package are built and run here; of the others,
the figures that were measured once."""

import os

import harness

HERE = os.path.dirname(os.path.abspath(__file__))

# The net of cnn.net and xor.net; GCC 12.2 -O2 on mps2-an386, in thousands of bytes and cycles. Code is the whole program
# less the harness of 1.1 KB. Built from their sources of 2026, which no package has.
MEASURED_BEFORE = {
    "small CNN, f32 inference": [
        ("onnx2c", dict(code=1.3, flash=12.1, ram=9.2, stack=0.1, instructions=1070, cycles=1320)),
        ("CMSIS-NN, direct calls", dict(code=8.7, flash=19.5, ram=5.8, stack=0.6, instructions=664, cycles=1087)),
        ("TFLite Micro", dict(code=29.7, flash=42.7, ram=7.3, stack=0.6, instructions=950, cycles=1473)),
        ("AIfES", dict(code=21.4, flash=32.2, ram=10.9, stack=0.5, instructions=2143, cycles=2970)),
    ],
    "small CNN, int8 inference": [
        ("CMSIS-NN, direct calls", dict(code=12.6, flash=15.8, ram=1.5, stack=0.9, instructions=290, cycles=381)),
        ("TFLite Micro + CMSIS-NN", dict(code=38.9, flash=45.1, ram=3.2, stack=0.9, instructions=291, cycles=384)),
        ("NNoM", dict(code=7.1, flash=9.8, ram=3.7, stack=0.5, instructions=652, cycles=907)),
    ],
    "small CNN, f32 training step": [
        ("AIfES", dict(code=25.5, ram=58.4, stack=6.2, instructions=7747, cycles=12765)),
        ("KANN, RMSprop", dict(code=45.9, ram=72, instructions=1028, cycles=1917)),
    ],
    "XOR, training step, batch 4": [
        ("AIfES", dict(code=19.0, ram=1.8, stack=0.4, instructions=23, cycles=41)),
    ],
}


def measure_emlearn(headers, folder, board):
    """mlp.net as its converter would write it: a table of layers over constant weights."""
    program = os.path.join(folder, f"emlearn-{board}.elf")
    net = harness.compile_object(board, os.path.join(HERE, "emlearn_mlp.c"), program + "-net.o", ["-w", "-I" + headers])
    main = harness.compile_object(board, os.path.join(HERE, "emlearn_main.c"), program + "-main.o")
    result = harness.run(board, harness.link(board, [net, main], program))
    if result["code"] != 0:
        raise harness.Failure(f"{program}: exit code {result['code']}\n{result['output']}")
    kept = harness.kept_object(board, net, "emlearn_run")  # without those of its functions that nobody calls
    size = harness.sizes(board, [kept])
    return dict(code=size["code"], constants=size["constants"] + size["data"], flash=size["flash"], ram=size["ram"],
                stack=result["values"]["stack"], **{k: result["counts"]["step"][k] for k in ("instructions", "cycles")})
