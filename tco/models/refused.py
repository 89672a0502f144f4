"""Model types known here that are not read, and why: what one token costs in them differs from what a decoder's layers say."""

from __future__ import annotations

ENCODER = "an encoder, which makes no tokens one by one"
BOTH = "an encoder and a decoder, which attends to the encoder's output: only decoders are read"
TOWER = "a language model behind a vision tower, whose work on images is not modelled; give the config of its language model"
MAMBA1 = "layers of the first Mamba, whose recurrence decays each number of the state by itself: only Mamba-2 is read"
SHARED = "layers that share one set of weights, with adapters of their own: layers are counted with weights of their own"

REASONS = {
    **dict.fromkeys(("albert", "bert", "deberta-v2", "distilbert", "modernbert", "roberta", "xlm-roberta"), ENCODER),
    **dict.fromkeys(("bart", "mt5", "t5", "umt5", "whisper"), BOTH),
    **dict.fromkeys(("idefics3", "internvl", "internvl_chat", "llava", "llava_next", "llava_onevision", "mllama", "paligemma"), TOWER),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "smolvlm"), TOWER),
    **dict.fromkeys(("falcon_mamba", "jamba", "mamba"), MAMBA1),
    **dict.fromkeys(("zamba", "zamba2"), SHARED),
}
