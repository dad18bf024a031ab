"""Count the language models that NeuSight measured, as it built them; it needs transformers."""

import csv
import io
import json
from dataclasses import replace
from functools import cache

import torch
from evidence.steps import LanguageStep
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
)

from course_tools.estimate.counting.count_work import count_work
from course_tools.estimate.counting.work import Work, sums_by_kind

FOLDER = "scripts/asplos/data/DLmodel_configs"


def measured(text, cards, methods):
    """Return the steps on one card without fusion, except those of Switch; see `LanguageStep`."""
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["option"] or row["model_name"].startswith("switch") or row["device"] not in cards:
            continue
        said = {name: row[f"{key}_all_e2e_latency"] for key, name in methods.items()}
        found.append(
            LanguageStep(
                device=cards[row["device"]],
                model=row["model_name"],
                tokens=int(row["seqlen"]),
                measured_s=float(row["label_all_e2e_latency"]) / 1e3,
                predicted_s={name: float(ms) / 1e3 for name, ms in said.items() if ms},
                work=Work(int(row["batch"]), 0, row["mode"] == "train", "fp32"),
            )
        )
    return found


def count(rows, read):
    """Return the rows with what was counted, without an optimizer, which was not measured."""

    @cache
    def work_of(name, tokens, batch, training):
        model = Logits(build(json.loads(read(f"{FOLDER}/{name}.json")), training))
        ids = torch.zeros(1, tokens, dtype=torch.int64)
        work = count_work(model, ids, batch=batch, precision="fp32", training=training)
        ops = [op for op in work.ops if op.name != "_foreach_adam"]
        return replace(work, ops=(), **sums_by_kind(ops))

    found = []
    for row in rows:
        work = work_of(row.model, row.tokens, row.work.batch, row.work.training)
        print(row.model, work)
        found.append(replace(row, work=work))
    return found


def build(config, training):
    """Return a model with attention in steps, as it was measured."""
    kind, known = config["model_type"], dict(config)
    for name in [*known]:
        if name in ("model_type", "architectures", "_name_or_path") or name.startswith("summary"):
            del known[name]
    known.pop("task_specific_params", None)
    config = AutoConfig.for_model(kind, **known)
    make = AutoModelForCausalLM
    if kind == "bert":
        make = AutoModelForPreTraining if training else AutoModelForSequenceClassification
    with torch.device("meta"):
        return make.from_config(config, attn_implementation="eager")


class Logits(nn.Module):
    """A model that returns its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        """Return the logits that a loss would take."""
        out = self.model(ids)
        return out.prediction_logits if "prediction_logits" in out else out.logits
