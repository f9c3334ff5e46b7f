"""OLMo-core: its model, its loss and its SkipStepAdamW (foreach), with PyTorch's attention."""
import peer

options, size = peer.read_options(__doc__)

import contextlib
import importlib.metadata

import torch
from olmo_core.nn.attention import SlidingWindowAttentionConfig
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import OptimGroupOverride, SkipStepAdamWConfig

torch.set_num_threads(options.threads)
config = TransformerConfig.olmo3_190M(vocab_size=size["vocab"])
config.d_model, config.n_layers = size["d_model"], size["n_layers"]
attention = config.block.attention if hasattr(config.block, "attention") else config.block.sequence_mixer
attention.n_heads, attention.n_kv_heads, attention.head_dim = size["n_heads"], size["n_heads"], size["head_dim"]
attention.use_flash, attention.backend = False, None
attention.sliding_window = SlidingWindowAttentionConfig(
    pattern=[size["window"], size["window"], size["window"], -1], force_full_attention_on_first_layer=False)
config.block.feed_forward.hidden_size = size["d_ff"]
model = config.build(init_device="cpu")
model.init_weights(max_seq_len=size["seq_len"], device=torch.device("cpu"))
model.train()
peer.check_parameters(size, model)
optimizer = SkipStepAdamWConfig(
    lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, foreach=True,
    group_overrides=[OptimGroupOverride(params=["embeddings.weight"], opts={"weight_decay": 0.0})]).build(model)


def step(batch):
    mean = 0.0
    labels = batch[0, :, 1:].size * len(batch)
    for micro in torch.from_numpy(batch):
        with torch.autocast("cpu", torch.bfloat16) if options.dtype == "bf16" else contextlib.nullcontext():
            out = model(micro[:, :-1].contiguous(), labels=micro[:, 1:].contiguous(), z_loss_multiplier=1e-5, loss_reduction="sum",
                        loss_div_factor=labels, return_logits=False)
        out.loss.backward()
        mean += out.ce_loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.latest_loss, optimizer.latest_grad_norm = torch.tensor(mean), norm
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return mean


peer.run("OLMo-core", options, size, step, olmo_core=importlib.metadata.version("ai2-olmo-core"), torch=torch.__version__)
