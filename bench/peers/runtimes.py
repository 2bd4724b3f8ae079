"""ONNX models in onnxruntime and OpenVINO, and what a process has in memory."""

import ctypes


def memory(*fields):
    """The sum of these fields of this process, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        told = dict(line.split(":", 1) for line in file)
    return sum(int(told[one].split()[0]) * 1024 for one in fields)


def resident():
    return memory("RssAnon")


def give_back():
    """What the C library keeps for later is not to be found there by what comes next."""
    ctypes.CDLL(None).malloc_trim(0)


def forget_most():
    """VmHWM begins anew."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def most_resident():
    """The most that it had at once since then, without pages of files."""
    return memory("VmHWM") - memory("RssFile", "RssShmem")


def of_onnxruntime(path, threads, inputs):
    import onnxruntime

    before = resident()
    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = threads, 1, 3
    session = onnxruntime.InferenceSession(path, how, providers=["CPUExecutionProvider"])
    given = {one.name: inputs[one.name] for one in session.get_inputs()}
    return before, lambda: session.run(None, given)


def of_openvino(path, threads, inputs):
    import openvino

    core = openvino.Core()
    before = resident()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1,
                              "INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(path)
    model.reshape({one.get_any_name(): list(inputs[one.get_any_name()].shape) for one in model.inputs})
    request = core.compile_model(model, "CPU").create_infer_request()
    given = {one.get_any_name(): inputs[one.get_any_name()] for one in model.inputs}
    return before, lambda: request.infer(given, share_inputs=True, share_outputs=True)


OF_LIBRARY = {"onnxruntime": of_onnxruntime, "openvino": of_openvino}
