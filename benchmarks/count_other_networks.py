"""Count networks for diffusion, detection and speech for the page "Is it worth it?".

    python benchmarks/count_other_networks.py

It needs diffusers, torchvision and transformers. Each network is made by the lines below, from its
public configuration and without weights, and the page hands out the same lines. It writes
tools/page/other_networks.json: what a sample is, the lines, the counted sums, the number of weights
and what others published of it.
"""

import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from course_tools.estimate import count_work, estimate_memory
from tools.page.page_data import OTHERS, short, step_text

HALF = "Inference is with weights in 16 bits."
DENOISING = (
    "A sample is one denoising step of one image. To draw one takes 20 to 50, "
    f"and with guidance twice as many. {HALF}"
)
ALL_WEIGHTS = "Training is of all weights: LoRA, which takes less memory, is not estimated."
# The job that the page asks about first: to adapt a network to data of one's own.
FINETUNING = {"batch": 1, "samples": 1_000, "epochs": 15}
SPEECH = {"batch": 8, "samples": 10_000, "epochs": 5}
LOOKING = {"batch": 1, "samples": 10_000, "epochs": 1}
# What was not counted, and why.
NO_BOXES = "Its training depends on the boxes in your pictures: count a step of yours below"
NO_WRITING = (
    "Transcribing writes its text token by token, which is not estimated. Others published "
    "for large-v3 on an A100 80GB 98 seconds to 5 minutes for 150 minutes of sound, "
    "24 pieces at once (Vaibhavs10/insanely-fast-whisper)"
)
DETECTORS = "torchvision.models.detection"
OPENAI = "weights, in OpenAI's table of Whisper's models"
TORCHVISION = "in torchvision's list of weights"
# By its name on the page: the lines that make `model` and `inputs`, what is special about it, and
# what others published of it.
NETWORKS = {
    "Stable Diffusion 1.5 U-Net, 512 x 512": {
        "note": f"{DENOISING} {ALL_WEIGHTS}",
        "usual": FINETUNING,
        "source": "860 million weights, in Table 1 of the paper on SDXL (arXiv 2307.01952)",
        "lines": """
            from diffusers import UNet2DConditionModel

            model = UNet2DConditionModel(sample_size=64, cross_attention_dim=768)
            latents, text = torch.empty(1, 4, 64, 64), torch.empty(1, 77, 768)
            inputs = {"sample": latents, "timestep": torch.ones(1), "encoder_hidden_states": text}
            """,
    },
    "Stable Diffusion XL U-Net (SDXL), 1024 x 1024": {
        "note": f"{DENOISING} {ALL_WEIGHTS}",
        "usual": FINETUNING,
        "source": "2.6 billion weights, in Table 1 of the paper on SDXL (arXiv 2307.01952)",
        "lines": """
            from diffusers import UNet2DConditionModel

            model = UNet2DConditionModel(
                sample_size=128,
                down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                block_out_channels=(320, 640, 1280),
                transformer_layers_per_block=(1, 2, 10),
                attention_head_dim=(5, 10, 20),
                cross_attention_dim=2048,
                use_linear_projection=True,
                addition_embed_type="text_time",
                addition_time_embed_dim=256,
                projection_class_embeddings_input_dim=2816,
            )
            latents, text = torch.empty(1, 4, 128, 128), torch.empty(1, 77, 2048)
            more = {"text_embeds": torch.empty(1, 1280), "time_ids": torch.ones(1, 6)}
            inputs = {
                "sample": latents,
                "timestep": torch.ones(1),
                "encoder_hidden_states": text,
                "added_cond_kwargs": more,
            }
            """,
    },
    "DiT-XL/2 diffusion transformer, 256 x 256": {
        "note": DENOISING,
        "source": "118.6 billion multiply-adds, in Table 4 of its paper (arXiv 2212.09748)",
        "lines": """
            from diffusers import DiTTransformer2DModel

            model = DiTTransformer2DModel()
            inputs = {
                "hidden_states": torch.empty(1, 4, 32, 32),
                "timestep": torch.ones(1, dtype=torch.int64),
                "class_labels": torch.ones(1, dtype=torch.int64),
            }
            """,
    },
    "Faster R-CNN, ResNet-50-FPN, 800 x 800": {
        "detector": "fasterrcnn_resnet50_fpn",
        "side": 800,
        "source": f"41,755,286 weights and 134.4 billion multiply-adds, {TORCHVISION}",
    },
    "Mask R-CNN, ResNet-50-FPN, 800 x 800": {
        "detector": "maskrcnn_resnet50_fpn",
        "side": 800,
        "source": f"44,401,393 weights, {TORCHVISION}",
    },
    "SSD300, VGG-16, 300 x 300": {
        "detector": "ssd300_vgg16",
        "side": 300,
        "source": f"35,641,826 weights and 34.9 billion multiply-adds, {TORCHVISION}",
    },
    "Whisper small, 30 s of speech": {
        "whisper": (12, 768, 12, 80, 51_865),
        "source": f"244 million {OPENAI}",
    },
    "Whisper large-v3, 30 s of speech": {
        "whisper": (32, 1280, 20, 128, 51_866),
        "source": f"1,550 million {OPENAI}",
    },
    "wav2vec 2.0 base, 10 s of speech": {
        "note": f"A sample is ten seconds of sound. The loss is not counted. {HALF}",
        "usual": SPEECH | {"epochs": 20},
        "source": "94.4 million weights, in OpenVINO's list of models",
        "lines": """
            from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

            config = Wav2Vec2Config(apply_spec_augment=False, layerdrop=0.0)
            model = Wav2Vec2ForCTC(config)
            inputs = torch.empty(1, 160_000)
            """,
    },
}
WHISPER = """
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    layers, width, heads = {layers}, {width}, {heads}
    config = WhisperConfig(
        vocab_size={words},
        num_mel_bins={mels},
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
    )
    model = WhisperForConditionalGeneration(config)
    words = torch.ones(1, 200, dtype=torch.int64)
    inputs = {{"input_features": torch.empty(1, {mels}, 3000), "labels": words}}
    """
DETECTOR = """
    from torchvision.models import detection

    model = detection.{detector}(weights=None, weights_backbone=None)
    inputs = ([torch.empty(3, {side}, {side})],)
    """


def whole(network):
    """Return a network of the table with its lines and its note."""
    source = {"source": network["source"]}
    if "whisper" in network:
        names = ("layers", "width", "heads", "mels", "words")
        made = WHISPER.format(**dict(zip(names, network["whisper"], strict=True)))
        note = f"A sample is 30 seconds of sound with a text of 200 tokens. {ALL_WEIGHTS}"
        only = {"only": "training", "why": NO_WRITING}
        return {"lines": made, "note": note, "usual": SPEECH, **only, **source}
    if "detector" in network:
        made = DETECTOR.format(**network)
        note = "A sample is one image."
        only = {"only": "inference", "why": NO_BOXES, "detects": True}
        return {"lines": made, "note": note, "usual": LOOKING, **only, **source}
    return network


def count(network):
    """Return what the page needs of a network: its lines, and its sums by task."""
    lines = textwrap.dedent(network["lines"]).strip().splitlines()
    made: dict[str, Any] = {"torch": torch}
    with torch.device("meta"):
        exec("\n".join(lines), made)
    model, inputs = made["model"], made["inputs"]
    steps, memory = {}, {}
    for task in [network["only"]] if "only" in network else ("training", "inference"):
        training = task == "training"
        if not training and not network.get("detects"):
            model.half()  # as people load them
        work = count_work(model, inputs, batch=4, precision="fp16", training=training)
        trained = 0.0
        if training:
            update = work.ops[-1]
            trained = update.elements
            other = work.kinds["other"]
            less = replace(
                other,
                bytes_moved=other.bytes_moved - update.bytes_moved,
                kernels=other.kernels - 1,
            )
            work = replace(work, other=less)
        steps[task] = step_text(work, trained)
        if not network.get("detects"):  # what a detector finds decides what it keeps
            held = estimate_memory(model, inputs, batch=4, training=training).lines()
            memory[task] = short(*[number for line in held for number in line])
        print(f"  {task}: {work.parameters / 1e6:,.1f} million parameters, {work}", flush=True)
    told = ("note", "source", "detects", "usual", "why")
    rest = {key: network[key] for key in told if key in network}
    weights = sum(each.numel() for each in model.parameters())
    return {"steps": steps, "memory": memory, "lines": lines, "weights": weights, **rest}


if __name__ == "__main__":
    found = json.loads(OTHERS.read_text("utf-8")) if OTHERS.exists() else {}
    missing = [each for each in NETWORKS if each not in found]  # delete the file to count all anew
    for name in missing:
        print(name, flush=True)
        found[name] = count(whole(NETWORKS[name]))
        ordered = {each: found[each] for each in NETWORKS if each in found}
        OTHERS.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
