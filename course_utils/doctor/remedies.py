"""Every cause that the doctor can name: why an accelerator is not usable, and the fix for each place.

Words in braces are filled in with what was found on the machine.
"""

PLACES = {
    "computer": "a computer of your own, or a server",
    "colab": "Google Colab",
    "kaggle": "Kaggle",
    "binder": "Binder",
    "ci": "a CI job",
    "tpu-vm": "a machine with a TPU",
}
ACCELERATOR_MENU = {
    "colab": "Runtime > Change runtime type > choose a GPU or TPU > Save. The notebook restarts from its first cell.",
    "kaggle": "Settings > Accelerator > choose one, then run the notebook from its first cell.",
}
NO_ACCELERATOR_PLACES = {
    "binder": "Binder lends CPUs only. Open this lesson on Colab or Kaggle for an accelerator.",
    "ci": "Ordinary CI runners have CPUs only. Skip the tests that need an accelerator, or use a runner that has one.",
}

# cause: (why, fix on any place, fixes for places where it differs)
REMEDIES: dict[str, tuple[str, str, dict[str, str]]] = {
    "works": ("{what}", "", {}),
    "rehearsal": (
        "XLA compiled and ran on this CPU: a rehearsal. No TPU was found, and its speed says nothing about one.",
        "Nothing to fix: it is right for learning. A real TPU takes Colab, Kaggle or a Google Cloud TPU VM.",
        {
            "colab": ACCELERATOR_MENU["colab"],
            "kaggle": ACCELERATOR_MENU["kaggle"],
        },
    ),
    "torch-absent": (
        "This Python has no torch: {python}",
        "Install the course with `make lab`, or choose the kernel of the environment that has torch.",
        {"colab": "Runtime > Disconnect and delete runtime: a fresh one brings torch."},
    ),
    "torch-too-old": (
        "torch {version} is installed, and the course needs 2.6 or later.",
        "Upgrade it: python -m pip install --upgrade torch. Then restart the kernel.",
        {
            "colab": "Runtime > Disconnect and delete runtime: a fresh one brings a newer torch.",
            "kaggle": "Settings > Environment > Always use latest environment, then restart the session.",
        },
    ),
    "broken-install": (
        "torch is installed but does not load: {error}",
        "A library is missing or is another version's. Unset LD_LIBRARY_PATH and LD_PRELOAD and try again; if it still "
        "fails, reinstall in a fresh environment: rm -r .venv && make lab.",
        {
            "colab": "Runtime > Disconnect and delete runtime, and leave the installed torch alone in the fresh one.",
            "kaggle": "Run > Factory reset, and leave the installed torch alone.",
        },
    ),
    "died": (
        "The process that tried it died of {signal} during this step: {step}.",
        "That is a fault below Python: a driver and torch that do not fit, a broken install or a faulty card. Update "
        "the driver, then reinstall torch in a fresh environment. The system log (dmesg) may name the fault.",
        {"colab": "Runtime > Disconnect and delete runtime.", "kaggle": "Run > Factory reset."},
    ),
    "hangs": (
        "It was silent for {limit} s in this step, and was stopped: {step}.",
        "A driver can be stuck, or another process can hold the device: end other programs that use it, then restart "
        "the machine. On a very busy machine, allow more time: --limit 60.",
        {"colab": "Runtime > Disconnect and delete runtime.", "kaggle": "Run > Factory reset."},
    ),
    "wrong-answer": (
        "{device} ran, but its answer for {step} differs from the CPU's by {difference}.",
        "Do not trust results of this device. Restart the machine, update the driver, and if it stays wrong, have the "
        "card tested or take another machine.",
        {},
    ),
    "kernel-failed": (
        "{device} was found, but {step} failed there: {error}",
        "Restart the kernel and try again. If it stays, update the driver and torch, and search for that message.",
        {},
    ),
    "no-hardware": (
        "No {maker} was found on this machine.",
        "Nothing to fix in software: every lesson runs on the CPU. Colab and Kaggle lend accelerators free of charge.",
        NO_ACCELERATOR_PLACES,
    ),
    "accelerator-off": (
        "This notebook runs on {place} with no {maker} attached: the accelerator is switched off.",
        "",
        ACCELERATOR_MENU,
    ),
    "no-driver": (
        "The hardware is there ({hardware}), but no working driver: {detail}",
        "Install the driver from your system's package manager or nvidia.com/drivers, restart, and check it with "
        "`nvidia-smi`. In a container, start it with the NVIDIA Container Toolkit: docker run --gpus all.",
        {"ci": "Give the job's container its GPU (docker run --gpus all) on a runner whose driver is installed."},
    ),
    "driver-too-old": (
        "The NVIDIA driver supports CUDA {driver_cuda} at most, and this torch was built for CUDA {torch_cuda}.",
        "Update the driver (nvidia.com/drivers) and restart; or, where you may not, install a torch built for an older "
        "CUDA: pytorch.org/get-started/previous-versions.",
        {"colab": "Runtime > Disconnect and delete runtime: a fresh one has a driver that fits its torch."},
    ),
    "driver-error": (
        "The driver is there, but CUDA does not start: {error}",
        "Restart the machine: a driver that was updated while in use fails until then. On a server of several cards, "
        "check that the nvidia-fabricmanager service runs.",
        {"colab": "Runtime > Disconnect and delete runtime.", "kaggle": "Run > Factory reset."},
    ),
    "cpu-only-build": (
        "torch {version} is a build for CPUs only, on a machine with {hardware}.",
        "Install the build for your accelerator, chosen at pytorch.org/get-started/locally, with --force-reinstall. "
        "Then restart the kernel.",
        {"colab": "Runtime > Disconnect and delete runtime: the GPU runtime brings torch for CUDA."},
    ),
    "hidden": (
        "{variable} is {value!r}, which hides what is here: {hardware}.",
        "Unset it (shell: unset {variable}) or give it an index that exists, such as 0, before Python starts. "
        "In a notebook, restart the kernel after changing it.",
        {},
    ),
    "card-too-old": (
        "{device} ({name}) has compute capability {capability}, and this torch has kernels for: {archs}.",
        "Install a torch build that has your card (pytorch.org/get-started/previous-versions), or use another card.",
        {"kaggle": "Settings > Accelerator > GPU T4 x2: the P100 is too old for this torch."},
    ),
    "out-of-memory": (
        "{device} works, but has no memory left for a kernel of a few kilobytes: {error}",
        "Another process holds it, often another notebook: shut that kernel down, or find it with `nvidia-smi` and "
        "end it. A kernel that crashed keeps its memory until it is restarted.",
        {"colab": "Runtime > Manage sessions > end the others, then Runtime > Restart session."},
    ),
    "other-platform": (
        "{what}",
        "Nothing to fix: this family does not exist for this kind of machine.",
        {},
    ),
    "not-built": (
        "This torch ({version}) was not built for {maker}.",
        "If you have such hardware, install the build for it, chosen at pytorch.org/get-started/locally.",
        {},
    ),
    "mps-unavailable": (
        "This torch was built for MPS, but the system offers no MPS device: {error}",
        "MPS needs a Mac with Apple silicon, a macOS that your torch still supports, and no virtual machine between. "
        "Update macOS, or use the CPU.",
        {"ci": "Virtual Macs of CI services offer no MPS: run these tests on the CPU there."},
    ),
    "torch-xla-absent": (
        "torch_xla is not installed.",
        "The XLA lesson works without it, with recorded results. To rehearse here: python -m pip install torch==2.9.0 "
        "torch_xla==2.9.0, in an environment of its own (Linux on x86-64 only).",
        {
            "colab": "Choose a TPU runtime: its image has torch_xla. Do not install it here: it would replace torch.",
            "kaggle": "Choose a TPU as accelerator: its image has torch_xla. Do not install it here.",
            "binder": "Binder's memory is too small for it. Read the recorded results, or open the lesson on Colab.",
            "tpu-vm": "python -m pip install torch==2.9.0 'torch_xla[tpu]==2.9.0'",
        },
    ),
    "torch-xla-mismatch": (
        "torch_xla {xla} was made for torch {xla_minor}, and torch {version} is installed: {error}",
        "Install the pair: python -m pip install torch==2.9.0 torch_xla==2.9.0. Then restart the kernel.",
        {
            "colab": "Runtime > Disconnect and delete runtime, choose a TPU runtime, and leave its torch alone.",
            "kaggle": "Run > Factory reset, choose a TPU, and leave its torch alone.",
        },
    ),
    "pjrt-device-wrong": (
        "PJRT_DEVICE is {value!r}: {error}",
        "Unset PJRT_DEVICE, so that torch_xla takes a TPU when there is one and else the CPU; or write TPU or CPU, in "
        "capitals. Restart the kernel afterwards.",
        {},
    ),
    "libtpu-absent": (
        "There is a TPU, but its library libtpu is not installed: {error}",
        "python -m pip install 'torch_xla[tpu]=={xla}', then restart the kernel.",
        {},
    ),
    "tpu-variables-left-over": (
        "Left over from another set-up: {names}. {effect}",
        "Remove them before torch_xla is imported: import os; [os.environ.pop(name, None) for name in ({quoted},)]. "
        "Keep TPU_PROCESS_ADDRESSES only where you launch one process for each TPU host yourself.",
        {},
    ),
    "torchtpu-absent": (
        "TorchTPU (the package torch_tpu) is not installed. The course does not need it.",
        "Nothing to fix. On a Google Cloud TPU with torch 2.11 or later you may try it, in an environment of its own.",
        {},
    ),
    "torchtpu-off-cloud": (
        "TorchTPU {version} is installed where there is no TPU. It loads itself with torch, and here {error}",
        "Remove it: python -m pip uninstall torch_tpu. Until then, start Python with TORCH_DEVICE_BACKEND_AUTOLOAD=0.",
        {},
    ),
}


def explain(cause: str, place: str, **words: object) -> tuple[str, str]:
    """Return why and the fix of one cause, for one place, with what was found filled in."""
    why, anywhere, there = REMEDIES[cause]
    words = {"place": PLACES[place], **words}
    return why.format(**words), there.get(place, anywhere).format(**words)
